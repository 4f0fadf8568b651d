"""The bytes of a stored value: epoch, format, body."""

from struct import Struct

VALUE_HEADER = Struct("<IB")
HEADER_BYTES = VALUE_HEADER.size

TOMBSTONE_FORMAT = 0
BODY_FORMAT = 1
PACKED_FORMAT = 2  # a row's cells without the bytes that are zero
