"""The path of a field: where an event has the value. Reads and writes the text of paths."""

import re
from dataclasses import dataclass, field
from typing import Final

STEPS_MAX: Final = 16
PLACE_MAX: Final = 15
TEXT_MAX: Final = 1_000
KEY, TIMESTAMP, HEADER = "@key", "@timestamp", "@header"
_OF_RECORD = re.compile(
    rf"{KEY}|{TIMESTAMP}|{HEADER}(?:\.([A-Za-z_][A-Za-z0-9_]*)|\['((?:[^']|'')+)'\])", re.ASCII
)
_STEP = re.compile(r"(\.?)([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]{1,4})\]|\['((?:[^']|'')*)'\]", re.ASCII)
_DIGITS_OF_VALUE = 6

Step = str | int


class PathTextError(ValueError):
    """A text is no path. The message says why, `hint` what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(frozen=True, slots=True)
class Path:
    """Where a field is: in the document of an event, or in the record of a topic that has the event.

    text: as it was written. Paths that differ in their text alone are equal.
    steps: keys of objects and indices of arrays; the first is a key. Empty if it is in the record.
    of_record: KEY, TIMESTAMP or HEADER; empty if it is in the document.
    header: the name of the header.
    """

    text: str = field(compare=False)
    steps: tuple[Step, ...] = ()
    of_record: str = ""
    header: str = ""

    def __str__(self) -> str:
        return self.text


def parse_path(text: str) -> Path:
    """Return the path that a text says. Raises PathTextError."""
    if len(text) > TEXT_MAX:
        raise PathTextError(f"a path has at most {TEXT_MAX:,} characters, not {len(text):,}", "shorten it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PathTextError("a lone surrogate has no UTF-8 form", "no event can have such a key") from None
    if text.startswith("@"):
        match = _OF_RECORD.fullmatch(text)
        if match is None:
            raise PathTextError(
                f"{text[:80]!r} is nothing that a record has",
                f"{KEY}, {TIMESTAMP}, {HEADER}.name or {HEADER}['a-name']; a key with an @ is quoted: ['@key']",
            )
        if match.lastindex is None:
            return Path(text, (), text)
        return Path(text, (), HEADER, match[1] or match[2].replace("''", "'"))
    return Path(text, _steps(text))


def _steps(text: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match[2] is not None and bool(match[1]) != bool(steps)):
            raise PathTextError(
                f"{text[:80]!r} is no path, from its character {at + 1} on",
                "keys with dots between them, [0] for elements of arrays, ['any-name'] for other keys",
            )
        if match[3] is not None:
            steps.append(int(match[3]))
        else:
            steps.append(match[2] if match[4] is None else match[4].replace("''", "'"))
        at = match.end()
    if not steps or not isinstance(steps[0], str):
        raise PathTextError(
            "a path begins with a key, as an event is an object", "write the name of the key first"
        )
    if len(steps) > STEPS_MAX:
        raise PathTextError(f"a path has at most {STEPS_MAX} steps, not {len(steps)}", "send it less deep")
    places = [step for step in steps if isinstance(step, int)]
    if max(places, default=0) > PLACE_MAX:
        raise PathTextError(f"there is no [{max(places)}] in paths", f"they reach from [0] to [{PLACE_MAX}]")
    return tuple(steps)


def text_of(steps: tuple[Step, ...]) -> str:
    """Return a text that `parse_path` reads as these steps."""
    parts: list[str] = []
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", step, re.ASCII):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append("['" + step.replace("'", "''") + "']")
    return "".join(parts)


def has_digits_of_value(name: str) -> bool:
    """Return whether a key, or the name of a column, has as many digits as a value: the number of an account, say."""
    return sum(each.isdigit() for each in name) >= _DIGITS_OF_VALUE


def has_lone_surrogate(text: str) -> bool:
    """Return whether a text has half of a surrogate pair, so that it has no UTF-8."""
    return not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)
