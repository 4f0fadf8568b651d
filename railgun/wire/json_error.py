"""What is said of a text that is no JSON: what is wrong, where, and what to send instead."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from railgun.wire.validator import FieldError, Location

_TRUNCATED = "Input data was truncated"  # of what msgspec says, the one thing without a place
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What JSON writers of other languages are known to write though it is no JSON.
_KNOWN = re.compile(rb"NaN|Infinity|\\u[dD][89a-fA-F]")
# A longer text is not read again, for the sake of those who wait: it is told in the decoder's words.
_READ_AGAIN_BYTES = 1 << 16


class _Constant(NamedTuple):
    """NaN, Infinity or -Infinity, as it was written."""

    name: str


# It takes what is looked for here; numbers are of no interest, and no number is too long for a double.
_decode = json.JSONDecoder(parse_constant=_Constant, parse_int=float).decode


def json_error(text: bytes | msgspec.Raw, error: Exception) -> FieldError:
    """What is said of a text. error: what a decoder of msgspec's raised for it."""
    whole = bytes(text)
    if not whole:
        return FieldError((), "no JSON: it is empty (byte 0)")
    if whole.startswith(_BYTE_ORDER_MARK):
        return FieldError((), "no JSON: it begins with a byte order mark; send UTF-8 without one (byte 0)")
    try:
        readable = whole.decode()
    except UnicodeDecodeError as found:
        return FieldError((), f"no JSON: not UTF-8 (byte {found.start})")
    if len(whole) <= _READ_AGAIN_BYTES and _KNOWN.search(whole):
        try:
            known = next(_faults(_decode(readable), ()), None)
        except (ValueError, RecursionError):
            known = None
        if known is not None:
            return known
    place = f" (byte {len(whole)})" if str(error) == _TRUNCATED else ""
    return FieldError((), f"no JSON: {error}{place}")


def _faults(value: Any, loc: Location) -> Iterator[FieldError]:
    """Of what Python's own decoder made of a text."""
    if isinstance(value, _Constant):
        yield FieldError(loc, f"{value.name} is no JSON; send null, or leave the field out")
    elif isinstance(value, str):
        yield from _lone_surrogates(value, loc)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _lone_surrogates(name, loc)
            yield from _faults(each, (*loc, name))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _faults(each, (*loc, place))


def _lone_surrogates(text: str, loc: Location) -> Iterator[FieldError]:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        escape = f"\\u{ord(text[error.start]):04x}"
        yield FieldError(
            loc, f"{escape} is half of a pair of surrogates, and no character; send both halves, or neither"
        )
