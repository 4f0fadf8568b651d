"""Durations, as the definitions write them (`5s`) and as queries do (`7 DAYS`)."""

import re

from tests.oracle.errors import DefinitionRefused

UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
QUERY_UNIT_MS = {
    "MILLISECOND": UNIT_MS["ms"],
    "SECOND": UNIT_MS["s"],
    "MINUTE": UNIT_MS["m"],
    "HOUR": UNIT_MS["h"],
    "DAY": UNIT_MS["d"],
    "WEEK": UNIT_MS["w"],
}


def parse_duration(text: object, key: str) -> int:
    """Milliseconds of `250ms 5s 10m 1h 7d 2w`; raises DefinitionRefused naming `key`."""
    match = re.fullmatch(r"([0-9]+)(ms|s|m|h|d|w)", text) if isinstance(text, str) else None
    if match is None:
        raise DefinitionRefused(f"{key}: {text!r} is no duration such as 250ms 5s 10m 1h 7d 2w")
    return int(match[1]) * UNIT_MS[match[2]]


def parse_retention(text: object) -> int | None:
    """Milliseconds, or None for `forever`; raises DefinitionRefused."""
    return None if text == "forever" else parse_duration(text, "retention")
