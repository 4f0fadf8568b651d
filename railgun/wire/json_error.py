"""Explains why a text is not JSON: what is wrong, where, and what to send instead."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from railgun.wire.validator import FieldError, Location

_TRUNCATED = "Input data was truncated"  # the only message of msgspec that names no place
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# JSON writers of other languages are known to write these, which are not JSON.
_KNOWN = re.compile(rb"NaN|Infinity|\\u[dD][89a-fA-F]")
# A longer text is not parsed again, because other requests wait meanwhile. Its error is the decoder's own message.
_READ_AGAIN_BYTES = 1 << 16


class _Constant(NamedTuple):
    """NaN, Infinity or -Infinity, as it was written."""

    name: str


# This decoder accepts the faults that are searched for here. Numbers do not matter, and as floats none is too long.
_decode = json.JSONDecoder(parse_constant=_Constant, parse_int=float).decode


def json_error(text: bytes | msgspec.Raw, error: Exception) -> FieldError:
    """Return the error for a text that is not JSON. error: what msgspec's decoder raised for the text."""
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
    """Yield the errors in what Python's own decoder made of a text."""
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
