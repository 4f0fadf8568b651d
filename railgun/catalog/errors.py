"""What can be wrong with a definition: the place, what is wrong, what may be meant."""

from collections.abc import Iterable

from railgun.language.errors import nearest, position_of
from railgun.wording import listed

Location = tuple[str | int, ...]


class DefinitionError(ValueError):
    """A definition that cannot be used.

    loc: the keys (and list places) that lead to what is wrong, as in ("streams", "payments", "lateness").
    message: one sentence, without the place.  hint: the remedy, or None.  file: where it was read, or None.
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
        """The same error, with the name of the file."""
        return DefinitionError(self.loc, self.message, self.hint, file)

    def in_text(self, text: str, offset: int) -> "DefinitionError":
        """The same error, with the line and column of an offset in a query's text."""
        place = position_of(text, offset)
        message = f"line {place.line}, column {place.column}: {self.message}"
        return DefinitionError(self.loc, message, self.hint, self.file)


class CatalogError(ValueError):
    """A change that does not fit the catalogue as it is: what exists already or does not exist."""


_SHOWN_WORDS = 20


def meant(word: str, known: Iterable[str]) -> str | None:
    """A hint that names the nearest known word, or where none is near all of them, if they are not too many."""
    words = sorted(known)
    near = nearest(word, words)
    if near is not None:
        return f"did you mean {near}?"
    return f"known here: {listed(words, _SHOWN_WORDS)}" if words else None


def no_metric(stream: str, name: str, known: Iterable[str]) -> str:
    """What is said where a metric is asked for that the stream does not have."""
    hint = meant(name, known)
    return f"{stream} has no metric {name[:80]!r}" + (f"; {hint}" if hint else "")
