"""The errors of the metric language. Each says what is wrong, where, what was expected, and what may be meant."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A place in query text. `offset` counts characters from 0, `line` and `column` from 1."""

    offset: int
    line: int
    column: int


def position_of(text: str, offset: int) -> Position:
    """The line and column of an offset; an offset outside the text is moved to its nearest end."""
    offset = min(max(offset, 0), len(text))
    line_start = text.rfind("\n", 0, offset) + 1
    return Position(offset, text.count("\n", 0, offset) + 1, offset - line_start + 1)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistyped word most likely means; None if no name is near."""
    by_lower: dict[str, str] = {}
    for name in known:
        by_lower.setdefault(name.lower(), name)
    matches = difflib.get_close_matches(word[:100].lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


class QueryError(ValueError):
    """A text is not a query, or a query does not fit its stream.

    message: one sentence, without the place.
    position: the place in the text.
    expected: what could have stood there; empty if that would not help.
    hint: the remedy, such as the nearest known name; None if there is only `expected`.
    """

    def __init__(
        self,
        message: str,
        position: Position,
        expected: Iterable[str] = (),
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.position = position
        self.expected = tuple(expected)
        self.hint = hint
        super().__init__(message, position, self.expected, hint)

    def __str__(self) -> str:
        parts = [f"line {self.position.line}, column {self.position.column}: {self.message}"]
        if self.expected:
            parts.append(f"expected {_listed(self.expected)}")
        if self.hint:
            parts.append(self.hint)
        return "; ".join(parts)


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class OffsetError(Exception):
    """An error at an offset in query text, raised by code that does not have the text. Callers make a QueryError of it.

    hint: the remedy. Each of these errors has one.
    """

    def __init__(self, message: str, offset: int, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint

    def in_text(self, text: str) -> QueryError:
        """Return the error with its line and column."""
        return QueryError(self.message, position_of(text, self.offset), hint=self.hint)
