"""What a script expects of a step: parsed from its `expect` lines, checked against a reply."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.compare import same_value

_PAIR = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*|\*)\s*=\s*")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class ScriptError(Exception):
    """A script that cannot be read; the message names the line."""


@dataclass
class Expectation:
    """All that a step's `expect` lines say. What is not said of metrics is free; late, duplicate, warming and
    partial are then expected to be absent."""

    values: dict[str, Any] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    late: dict[str, str] = field(default_factory=dict)
    duplicate: set[str] = field(default_factory=set)
    warming: set[str] = field(default_factory=set)
    partial: dict[str, int] = field(default_factory=dict)
    as_of: dict[str, int | None] = field(default_factory=dict)
    time: int | None = None
    refused: bool = False

    def take(self, text: str) -> None:
        """Read one `expect` line, without that word; raises ScriptError."""
        word, _, rest = text.partition(" ")
        if text == "refused":
            self.refused = True
        elif word == "late":
            self.late |= dict([_two_words(rest)])
        elif word == "duplicate":
            self.duplicate |= set(rest.split())
        elif word == "warming":
            self.warming |= set(_names(rest))
        elif word == "absent":
            self.absent |= set(_names(rest))
        elif word == "partial":
            self.partial |= _pairs(rest)
        elif word == "as_of":
            self.as_of |= _pairs(rest)
        elif word == "time" and rest:
            self.time = int(rest)
        else:
            self.values |= _pairs(text)

    def complaints(self, reply: Mapping[str, Any]) -> Iterator[str]:
        """What in a reply is not as expected, a line each."""
        metrics = reply["metrics"]
        for name, value in self.values.items():
            if name not in metrics:
                yield f"no metric {name}"
            elif not same_value(value, metrics[name]):
                yield f"{name}: expected {value!r}, got {metrics[name]!r}"
        for name in sorted(self.absent & set(metrics)):
            yield f"{name} should be gone, got {metrics[name]!r}"
        if self.time is not None and not same_value(self.time, reply["time"]):
            yield f"time: expected {self.time}, got {reply['time']}"
        if self.as_of and self.as_of != reply["as_of"]:
            yield f"as_of: expected {self.as_of}, got {reply['as_of']}"
        for key, wanted, got in (
            ("late", self.late, reply.get("late", {})),
            ("duplicate", self.duplicate, set(reply.get("duplicate", ()))),
            ("warming", self.warming, set(reply.get("warming", ()))),
            ("partial", self.partial, reply.get("partial", {})),
        ):
            if wanted != got:
                yield f"{key}: expected {wanted or 'none'}, got {got or 'none'}"


def _two_words(text: str) -> tuple[str, str]:
    words = text.split()
    if len(words) != 2:
        raise ScriptError(f"expected a partitioner and what became of the event, not {text!r}")
    return words[0], words[1]


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not _NAME.fullmatch(name):
            raise ScriptError(f"{name!r} is no name")
    return names


def _pairs(text: str) -> dict[str, Any]:
    """`name=value, name=value`, the values in JSON."""
    pairs: dict[str, Any] = {}
    position = 0
    while True:
        match = _PAIR.match(text, position)
        if match is None:
            raise ScriptError(f"expected name=value at {text[position:]!r}")
        try:
            pairs[match[1]], position = json.JSONDecoder().raw_decode(text, match.end())
        except json.JSONDecodeError as error:
            raise ScriptError(f"{match[1]}: {error}") from error
        if not text[position:].strip():
            return pairs
        if not text[position:].lstrip().startswith(","):
            raise ScriptError(f"expected a comma at {text[position:]!r}")
        position = text.index(",", position) + 1
