"""Turns an error of Spark or of a worker into one line instead of two stacks."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from railgun.spark.errors import SparkSideError

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""The errors that Spark raises. The second is for errors of Java without a class in Python, such as damaged files."""

JAVA_ENDED = (Py4JNetworkError, ConnectionRefusedError)
"""The errors of a call to a Java that has ended. The second comes if Py4J has to open a new connection."""

# A path may have spaces. It reaches to the end of the sentence.
_FILE_ERROR = re.compile(
    r"\[FAILED_READ_FILE(\S*)\] [^\n]*?reading file (.+?)\.{1,2}(?: +[A-Z][^\n]*|\s*)$", re.M
)
_CAUSE = re.compile(r"Caused by: (?:[\w.$]+[.$])?(\w+(?:: [^\n]+)?)")
_OF_A_CALL = "An error occurred while calling "
_SIGNAL_S = 0.5
_TRACEBACK = "Traceback (most recent call last):\n"
_OWN_ERROR = re.compile(r"(?:railgun|reservoir)(?:\.\w+)+Error: (.+)")
# The form in which Python raises an error of the system, such as a full disk.
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
    """Raise errors that somebody can do something about as errors of this kind, with one line.

    These are errors of this project or of the system in a worker, files that Spark cannot read, and too little memory
    or disk.
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
        # A signal to the whole job may have ended Java, and may be on its way to this process. Then the
        # signal is reported.
        time.sleep(_SIGNAL_S)
        raise kind(
            "Java, and Spark in it, has ended: was it killed, as the system does where memory is short? Free some, or "
            "let Spark have less (--memory)"
        ) from error


def _of_worker(text: str) -> str | None:
    """Return the error with which a worker's Python ended, if that is known; not one that was handled before."""
    _, is_available, trace = text.rpartition(_TRACEBACK)
    if not is_available:
        return None
    raised = next((line for line in trace.splitlines() if line and not line[0].isspace()), "")
    found = _OWN_ERROR.match(raised) or _SYSTEM_ERROR.match(raised)
    return None if found is None else found[1]


def _of_limits(text: str) -> str | None:
    """Return what to do if Java says that memory or disk did not suffice; None for other errors."""
    for sign, explanation in _LIMITS.items():
        if sign in text:
            return explanation
    return None


def of_file(error: Exception) -> str | None:
    """Return which file Spark could not read, and why; None for other errors."""
    found = _FILE_ERROR.search(str(error))
    if found is None:
        return None
    causes = _CAUSE.findall(str(error))
    why = f" ({causes[-1]})" if causes else ""
    # The file is given as an address, unless its footer could not be read.
    named = found[2] if "FOOTER" in found[1] else unquote(found[2])
    place = re.sub(r"^file:/+", "/", named)
    return f"{place}: Spark cannot read it{why}; is it whole, and of the format that it is read as?"


def first_line(error: Exception) -> str:
    """Return the message of an error of Spark without its plan, or of Java without its stack."""
    lines = (line.strip() for line in str(error).splitlines())
    # An error without a class in Python has the call in its first line, and the outcome in the next one.
    lines = (
        line.removeprefix(": ").rstrip(";") for line in lines if line and not line.startswith(_OF_A_CALL)
    )
    return next(lines, type(error).__name__)
