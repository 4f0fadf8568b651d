"""Whether a reply is the one that the oracle gives: bit for bit, with the differences in words."""

import struct
from collections.abc import Collection, Iterator, Mapping
from typing import Any


def same_value(expected: object, got: object) -> bool:
    """Equal in type and, for doubles, in bits: 1, 1.0 and True are three values, and 0.0 is not -0.0."""
    if type(expected) is not type(got):
        return False
    if isinstance(expected, float) and isinstance(got, float):
        return struct.pack("<d", expected) == struct.pack("<d", got)
    return expected == got


def differences(
    expected: Mapping[str, Any], got: Mapping[str, Any], *, any_warming: bool = False
) -> list[str]:
    """What is wrong in a reply, a line each; empty where it is right.

    Where the oracle knows no id (the front-end made it) any will do. With `any_warming` a metric may still
    be warming, and so null, though the oracle has it warm: for runs that leave `warm` records to the engine.
    """
    late_to_warm = set(got.get("warming", ())) - set(expected.get("warming", ()))
    excused = late_to_warm & set(expected["metrics"]) if any_warming else set()
    return list(_differences(expected, got, excused))


def _differences(expected: Mapping[str, Any], got: Mapping[str, Any], excused: set[str]) -> Iterator[str]:
    known = {"id", "time", "metrics", "late", "duplicate", "warming", "partial", "as_of"}
    for key in sorted(set(got) - known):
        yield f"unknown key {key!r}"
    if expected.get("as_of") != got.get("as_of"):
        yield f"as_of: expected {expected.get('as_of')}, got {got.get('as_of')}"
    if expected["id"] is not None and not same_value(expected["id"], got.get("id")):
        yield f"id: expected {expected['id']!r}, got {got.get('id')!r}"
    if not same_value(expected["time"], got.get("time")):
        yield f"time: expected {expected['time']!r}, got {got.get('time')!r}"
    yield from metric_differences(expected["metrics"], got.get("metrics", {}), excused)
    for key in ("duplicate", "warming"):
        wanted = set(expected.get(key, ())) | (excused if key == "warming" else set())
        found = got.get(key, ())
        if wanted != set(found) or len(set(found)) != len(found) or (key in got and not found):
            yield f"{key}: expected {sorted(wanted)}, got {list(found)}"
    for key in ("late", "partial"):
        wanted_map = {k: v for k, v in expected.get(key, {}).items() if key == "late" or k not in excused}
        if wanted_map != got.get(key, {}) or (key in got and not got[key]):
            yield f"{key}: expected {wanted_map}, got {got.get(key)}"


def metric_differences(
    expected: Mapping[str, Any], got: Mapping[str, Any], excused: Collection[str] = ()
) -> Iterator[str]:
    """What is wrong in the values of metrics, by name: names, types and bits. excused: these have to be null."""
    for name in sorted(set(expected) | set(got)):
        if name not in got:
            yield f"{name}: missing, expected {expected[name]!r}"
        elif name not in expected:
            yield f"{name}: not a metric here, got {got[name]!r}"
        else:
            wanted = None if name in excused else expected[name]
            if not same_value(wanted, got[name]):
                yield f"{name}: expected {wanted!r}, got {got[name]!r}"
