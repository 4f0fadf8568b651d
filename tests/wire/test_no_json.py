"""What is said of texts that are no JSON: in plain words, with the place."""

import msgspec
import pytest

from railgun.wire.json_error import json_error
from railgun.wire.values import decode_json

NEITHER = "is half of a pair of surrogates, and no character; send both halves, or neither"
NO_NUMBER = "is no JSON; send null, or leave the field out"


@pytest.mark.parametrize(
    ("text", "loc", "said"),
    [
        (b"", (), "no JSON: it is empty (byte 0)"),
        (b"\xef\xbb\xbf{}", (), "no JSON: it begins with a byte order mark; send UTF-8 without one (byte 0)"),
        (b'{"a": "\xff"}', (), "no JSON: not UTF-8 (byte 7)"),
        (b'{"a": NaN, "b": Infinity}', ("a",), f"NaN {NO_NUMBER}"),
        (b'{"a": {"b": [1, -Infinity]}}', ("a", "b", 1), f"-Infinity {NO_NUMBER}"),
        (b"Infinity", (), f"Infinity {NO_NUMBER}"),
        (b'{"n": %s, "a": NaN}' % (b"9" * 5_000), ("a",), f"NaN {NO_NUMBER}"),
        (b'{"NaN": "\\ud800"}', ("NaN",), f"\\ud800 {NEITHER}"),
        (b'{"a": "x\\uDC00y"}', ("a",), f"\\udc00 {NEITHER}"),
        (b'{"a": "\\ud83dx\\ude00 and more"}', ("a",), f"\\ud83d {NEITHER}"),
        (b'{"b": {"\\ud800": NaN}}', ("b",), f"\\ud800 {NEITHER}"),
        (b'{"a": NaN', (), "no JSON: JSON is malformed: invalid character (byte 6)"),
        (b'{"a": "NaN', (), "no JSON: Input data was truncated (byte 10)"),
        (b'{"a": "\\ud8', (), "no JSON: Input data was truncated (byte 11)"),
        (b'{"a": NaN, "c": ' + b"[" * 5_000, (), "no JSON: JSON is malformed: invalid character (byte 6)"),
        (
            b'{"a": NaN, "b": "%s"}' % (b"x" * (1 << 18)),
            (),
            "no JSON: JSON is malformed: invalid character (byte 6)",
        ),
        (b'{"a": NaN, "a": 1}', (), "no JSON: JSON is malformed: invalid character (byte 6)"),
    ],
)
def test_what_is_said(text: bytes, loc: tuple[str | int, ...], said: str) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as raised:
        decode_json(text)
    assert json_error(text, raised.value) == (loc, said)
    assert json_error(msgspec.Raw(text), raised.value) == (loc, said)
