"""Turns errors into one line for people, with the place and the remedy, on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager

from railgun.language.errors import nearest
from railgun.wording import error_text

EXIT_NO, EXIT_WRONG, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143

# The most characters of an unexpected error. Some of these bring two stacks along.
_SHOWN = 500
_PACKAGES = ("railgun", "reservoir", "frontend")


class UsageError(Exception):
    """The command was called in a wrong way. The message says what to write instead."""


@contextmanager
def needing_spark(what: str) -> Iterator[None]:
    """Raise UsageError that says what to install if a package of Spark's commands is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{what} needs Spark, and {error.name} is not installed: pip install '.[spark]' in Railgun's folder, and "
            "Java 17"
        ) from error


def one_line(error: BaseException) -> str:
    """Return the error and its remedy as one line."""
    if isinstance(error, MemoryError):
        text = "out of memory; close other programs, or lower the memory limits"
    elif is_expected(error):
        text = error_text(error)
    else:
        text = (
            f"a defect of this program ({type(error).__name__}: {str(error)[:_SHOWN]}); --debug shows where"
        )
    return " ".join(text.split())


def is_expected(error: BaseException) -> bool:
    """Whether this project raises errors of this kind on purpose, with a message for people."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _PACKAGES


def unknown(what: str, word: str, known: list[str]) -> str:
    """Return a message about an unknown word, with the nearest known one."""
    near = nearest(word, known)
    hint = f"did you mean {near}?" if near else f"there are: {', '.join(known)}"
    return f"unknown {what} {word[:80]!r}; {hint}"
