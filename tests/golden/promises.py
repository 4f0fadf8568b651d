"""Holds what a test finds against a checked-in file: what other programs and old folders read. See README.md."""

import difflib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

EXPECTED = Path(__file__).parent / "expected"
SWITCH, WRITE = "RAILGUN_GOLDEN", "write"


def held(name: str, found: object, folder: Path = EXPECTED) -> None:
    """Fail unless `found`, as indented JSON, is the file `name`. Bytes are shown in hexadecimal."""
    text = json.dumps(found, indent=1, ensure_ascii=False, default=_hexadecimal)
    held_bytes(name, f"{text}\n".encode(), folder)


def held_bytes(name: str, found: bytes, folder: Path = EXPECTED) -> None:
    """Fail unless `found` is the file `name`, byte for byte.

    With the switch the file is written; the test fails all the same where that changed it.
    """
    place = folder / name
    before = place.read_bytes() if place.is_file() else b""
    mode = os.environ.get(SWITCH)
    if mode == WRITE:
        place.write_bytes(found)
    elif mode is not None:
        pytest.fail(f"{SWITCH}={mode} means nothing; {WRITE} is the only value", pytrace=False)
    if found != before:
        shown = _difference(name, before, found)
        pytest.fail(f"a promise is broken (tests/golden/README.md):\n{shown}", pytrace=False)


def expected(name: str) -> Any:
    """The value that a checked-in JSON file holds."""
    return json.loads((EXPECTED / name).read_bytes())


def masked(body: Any, *keys: str) -> Any:
    """A copy of `body` in which the values of these keys, at any depth, are replaced by their kinds."""
    if isinstance(body, Mapping):
        return {
            name: kind_of(value) if name in keys else masked(value, *keys) for name, value in body.items()
        }
    if isinstance(body, list | tuple):
        return [masked(each, *keys) for each in body]
    return body


def kind_of(value: Any) -> Any:
    """The kind of a value, as in "<int>". A table keeps its keys, a list one entry, and null stays null."""
    if isinstance(value, Mapping):
        return {name: kind_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [kind_of(each) for each in value[:1]]
    return value if value is None else f"<{type(value).__name__}>"


def rooted(body: Any, folder: Path, name: str = "<folder>") -> Any:
    """A copy of `body` in which every text names a folder by `name`."""
    if isinstance(body, Mapping):
        return {rooted(key, folder, name): rooted(value, folder, name) for key, value in body.items()}
    if isinstance(body, list | tuple):
        return [rooted(each, folder, name) for each in body]
    return body.replace(str(folder), name) if isinstance(body, str) else body


def _hexadecimal(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"hex:{bytes(value).hex()}"
    raise TypeError(f"no golden form for {type(value).__name__}")


def _difference(name: str, before: bytes, found: bytes) -> str:
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, found))
    lines = list(difflib.unified_diff(old, new, f"expected/{name}", "found", lineterm="", n=2))
    return "\n".join(lines[:60] or ["the line ends differ"])
