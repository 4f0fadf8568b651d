"""What went wrong in Spark or in a worker, as one line instead of two stacks."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from railgun.spark.errors import SparkSideError

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: the second where Python has no class for what Java raised, as for files that are damaged."""

JAVA_ENDED = (Py4JNetworkError, ConnectionRefusedError)
"""What comes of asking a Java that is gone: the second of Py4J's connections that were not open yet."""

# A path may have spaces: it ends with the sentence.
_FILE_ERROR = re.compile(
    r"\[FAILED_READ_FILE(\S*)\] [^\n]*?reading file (.+?)\.{1,2}(?: +[A-Z][^\n]*|\s*)$", re.M
)
_CAUSE = re.compile(r"Caused by: (?:[\w.$]+[.$])?(\w+(?:: [^\n]+)?)")
_OF_A_CALL = "An error occurred while calling "
_SIGNAL_S = 0.5
_TRACEBACK = "Traceback (most recent call last):\n"
_OWN_ERROR = re.compile(r"(?:railgun|reservoir)(?:\.\w+)+Error: (.+)")
# As Python raises a system's error, such as a disk that is full.
_SYSTEM_ERROR = re.compile(r"\w+Error: \[Errno \d+\] (.+)")
_LIMITS = {
    "java.lang.OutOfMemoryError": "Spark's memory did not suffice: give it more (--memory 2g, or spark-submit's own)",
    "No space left on device": "the disk that Spark writes to is full: free space there, or name another one in "
    "SPARK_LOCAL_DIRS",
    "Python worker exited unexpectedly": "a worker of Spark's has ended by itself: was it killed, as the system does "
    "where memory is short? Free some, or give Spark fewer cores (--cores)",
}


@contextmanager
def own_errors(kind: type[SparkSideError]) -> Iterator[None]:
    """Raise what somebody can do something about as an error of this kind, with its line: this project's or the
    system's that came up in a worker, a file that Spark cannot read, memory or disk that did not suffice.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        text = str(error)
        message = _of_worker(text) or of_file(error) or _of_limits(text)
        if message is None:
            raise
        raise kind(message) from error
    except JAVA_ENDED as error:
        # What has ended Java may have been a signal to all of a job, and be on its way here: that is told then.
        time.sleep(_SIGNAL_S)
        raise kind(
            "Java, and Spark in it, has ended: was it killed, as the system does where memory is short? Free some, or "
            "let Spark have less (--memory)"
        ) from error


def _of_worker(text: str) -> str | None:
    """What a worker's Python ended with, where that is known: not what was handled on the way there."""
    _, is_available, trace = text.rpartition(_TRACEBACK)
    if not is_available:
        return None
    raised = next((line for line in trace.splitlines() if line and not line[0].isspace()), "")
    found = _OWN_ERROR.match(raised) or _SYSTEM_ERROR.match(raised)
    return None if found is None else found[1]


def _of_limits(text: str) -> str | None:
    """What Java says where memory or disk did not suffice, as what to do about it."""
    for sign, explanation in _LIMITS.items():
        if sign in text:
            return explanation
    return None


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
    lines = (
        line.removeprefix(": ").rstrip(";") for line in lines if line and not line.startswith(_OF_A_CALL)
    )
    return next(lines, type(error).__name__)
