"""The errors of definitions and changes. They name the place, the error, and the likely remedy."""

from collections.abc import Iterable

from railgun.language.errors import nearest, position_of
from railgun.wording import listed

Location = tuple[str | int, ...]


class DefinitionError(ValueError):
    """A definition cannot be used.

    loc: the keys (and list places) that lead to the error, as in ("streams", "payments", "lateness").
    message: one sentence, without the place.  hint: the remedy, or None.  file: the file's name, or None.
    """

    def __init__(self, loc: Location, message: str, hint: str | None = None, file: str | None = None) -> None:
        self.loc = loc
        self.message = message
        self.hint = hint
        self.file = file
        super().__init__(loc, message, hint, file)

    def __str__(self) -> str:
        place = ".".join(map(str, self.loc))
        parts = [part for part in (self.file, place, self.message) if part]
        return ": ".join(parts) + (f"; {self.hint}" if self.hint else "")

    def in_file(self, file: str) -> "DefinitionError":
        """Returns this error with the name of the file."""
        return DefinitionError(self.loc, self.message, self.hint, file)

    def in_text(self, text: str, offset: int) -> "DefinitionError":
        """Returns this error with the line and column of an offset in a query's text."""
        place = position_of(text, offset)
        message = f"line {place.line}, column {place.column}: {self.message}"
        return DefinitionError(self.loc, message, self.hint, self.file)


class CatalogError(ValueError):
    """A change does not fit the catalogue: something exists already, or does not exist."""


_SHOWN_WORDS = 20


def meant(word: str, known: Iterable[str]) -> str | None:
    """Returns a hint for a misspelt word: the nearest known word, else a list of the known words; None without any."""
    words = sorted(known)
    near = nearest(word, words)
    if near is not None:
        return f"did you mean {near}?"
    return f"known here: {listed(words, _SHOWN_WORDS)}" if words else None


def no_metric(stream: str, name: str, known: Iterable[str]) -> str:
    """Returns the message for a metric that the stream does not have."""
    hint = meant(name, known)
    return f"{stream} has no metric {name[:80]!r}" + (f"; {hint}" if hint else "")
