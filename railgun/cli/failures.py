"""Errors as people see them: one line with the place and the remedy, on stderr."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from railgun.language.errors import nearest

EXIT_NO, EXIT_WRONG, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143

# Of an error that nobody expected; some bring two stacks along.
_SHOWN = 500
_PACKAGES = ("railgun", "reservoir", "frontend")
_REMEDIES = {
    errno.ENOENT: "is the path right?",
    errno.EISDIR: "a file belongs here, not a folder",
    errno.ENOTDIR: "a folder belongs here, not a file",
    errno.EACCES: "check its permissions",
    errno.EPERM: "check its permissions",
    errno.ENOSPC: "free space, then run it again",
    errno.EDQUOT: "free space, then run it again",
    errno.EROFS: "choose a place that can be written to",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


class UsageError(Exception):
    """The command cannot be run as it was called; the message says what to write instead."""


@contextmanager
def needing_spark(what: str) -> Iterator[None]:
    """Say what to install where a package that Spark's commands need is not. Raises UsageError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{what} needs Spark, and {error.name} is not installed: pip install '.[spark]' in Railgun's folder, and "
            "Java 17"
        ) from error


def one_line(error: BaseException) -> str:
    """What went wrong and what can be done, without a line break."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        remedy = _REMEDIES.get(error.errno or 0)
        text = place + error.strerror + (f"; {remedy}" if remedy else "")
    elif isinstance(error, MemoryError):
        text = "out of memory; close other programs, or lower the memory limits"
    elif is_expected(error):
        text = str(error)
    else:
        text = (
            f"a defect of this program ({type(error).__name__}: {str(error)[:_SHOWN]}); --debug shows where"
        )
    return " ".join(text.split())


def is_expected(error: BaseException) -> bool:
    """Whether an error is of a kind that this project raises on purpose, with a message for people."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _PACKAGES


def unknown(what: str, word: str, known: list[str]) -> str:
    """A message about a word that is not known, with the nearest that is."""
    near = nearest(word, known)
    hint = f"did you mean {near}?" if near else f"there are: {', '.join(known)}"
    return f"unknown {what} {word[:80]!r}; {hint}"
