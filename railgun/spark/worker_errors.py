"""What went wrong in Spark or in a worker, as one line instead of two stacks."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from railgun.spark.errors import SparkSideError

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: the second where Python has no class for what Java raised, as for files that are damaged."""

# A path may have spaces: it ends with the sentence.
_FILE_ERROR = re.compile(
    r"\[FAILED_READ_FILE(\S*)\] [^\n]*?reading file (.+?)\.{1,2}(?: +[A-Z][^\n]*|\s*)$", re.M
)
_CAUSE = re.compile(r"Caused by: (?:[\w.$]+[.$])?(\w+(?:: [^\n]+)?)")
_OF_A_CALL = "An error occurred while calling "
_OWN_ERROR = re.compile(r"((?:railgun|reservoir)(?:\.\w+)+Error): ([^\n]+)")
# As a traceback ends of what Python raises for a system's error, such as a disk that is full.
_SYSTEM_ERROR = re.compile(r"^\w+Error: \[Errno \d+\] ([^\n]+)", re.M)


@contextmanager
def own_errors(kind: type[SparkSideError]) -> Iterator[None]:
    """Raise an error of this project or of the system that came up in a worker, or a file that Spark cannot read, as
    one of this kind, with its line.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        found = [each[1] for each in _OWN_ERROR.findall(str(error))] or _SYSTEM_ERROR.findall(str(error))
        said = found[-1] if found else of_file(error)
        if said is None:
            raise
        raise kind(said) from error


def of_file(error: Exception) -> str | None:
    """Which file Spark could not read, and why; None for other errors."""
    found = _FILE_ERROR.search(str(error))
    if found is None:
        return None
    causes = _CAUSE.findall(str(error))
    why = f" ({causes[-1]})" if causes else ""
    # As an address, but where a footer cannot be read.
    named = found[2] if "FOOTER" in found[1] else unquote(found[2])
    place = re.sub(r"^file:/+", "/", named)
    return f"{place}: Spark cannot read it{why}; is it whole, and of the format that it is read as?"


def first_line(error: Exception) -> str:
    """What an error of Spark's says, without its plan, or of Java's, without its stack."""
    lines = (line.strip() for line in str(error).splitlines())
    # Of what has no class in Python, the call comes first, and on the next line what came of it.
    said = (line.removeprefix(": ").rstrip(";") for line in lines if line and not line.startswith(_OF_A_CALL))
    return next(said, type(error).__name__)
