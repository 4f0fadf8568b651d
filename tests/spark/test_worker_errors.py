"""Spark's errors as one line that names the file, or what Java said."""

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkRuntimeError

from railgun.spark.errors import BackfillFailedError
from railgun.spark.worker_errors import first_line, of_file, own_errors

_CAUSE = "\n\tat org.apache.Some.method(Some.java:1)\nCaused by: java.lang.RuntimeException: it is not a Parquet file\n"


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (
            "CANNOT_READ_FILE_FOOTER] Encountered error while reading file file:/lake/a b%20/x. Could not read.",
            "/lake/a b%20/x",
        ),
        (
            "NO_HINT] Encountered error while reading file file:///data/my%20lake/x.parquet.  SQLSTATE: KD001",
            "/data/my lake/x.parquet",
        ),
        ("NO_HINT] Encountered error while reading file s3a://lake/v1.2/x.csv.", "s3a://lake/v1.2/x.csv"),
    ],
)
def test_the_file_is_named_as_its_owner_does(said: str, place: str) -> None:
    told = of_file(ValueError(f"[FAILED_READ_FILE.{said}{_CAUSE}"))
    assert told is not None
    assert told.startswith(f"{place}: Spark cannot read it (RuntimeException: it is not a Parquet file)")


def test_what_java_said_is_told_and_not_which_call_it_was() -> None:
    error = ValueError(
        "An error occurred while calling o47.load.\n: java.lang.RuntimeException: Class S3AFileSystem not found\n\tat x"
    )
    assert first_line(error) == "java.lang.RuntimeException: Class S3AFileSystem not found"
    assert first_line(ValueError("no such column;\n'Project")) == "no such column"
    assert first_line(ValueError("")) == "ValueError"


def test_a_full_disk_of_a_worker_is_no_defect() -> None:
    told = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
Traceback (most recent call last):
  File "tasks.py", line 1, in build
OSError: [Errno 28] No space left on device: '/scratch/t'

\tat org.apache.spark.api.python.BasePythonRunner"""
    assert raised(PySparkRuntimeError(told)) == "No space left on device: '/scratch/t'"


def raised(error: Exception) -> str:
    """What comes of an error."""
    with pytest.raises(BackfillFailedError) as told, own_errors(BackfillFailedError):
        raise error
    return str(told.value)


def test_what_a_worker_had_handled_is_not_told() -> None:
    told = """Traceback (most recent call last):
  File "tasks.py", line 1, in build
railgun.spark.errors.HistoryError: it was handled

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "tasks.py", line 2, in build
KeyError: 'a defect'

\tat org.apache.spark.api.python.BasePythonRunner"""
    with pytest.raises(PySparkRuntimeError), own_errors(BackfillFailedError):
        raise PySparkRuntimeError(told)
    assert (
        raised(PySparkRuntimeError(told.replace("KeyError: 'a", "reservoir.errors.ChunkError: 'a")))
        == "'a defect'"
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Task 1 failed: java.lang.OutOfMemoryError: Java heap space", "--memory"),
        ("Task 1 failed: java.io.IOException: No space left on device", "SPARK_LOCAL_DIRS"),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", "killed"),
    ],
)
def test_what_did_not_suffice_is_told_with_its_remedy(said: str, told: str) -> None:
    assert told in raised(PySparkRuntimeError(said))


def test_a_java_that_is_gone_is_told() -> None:
    for error in (Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111, "refused")):
        assert "has ended" in raised(error)
    with pytest.raises(FileNotFoundError), own_errors(BackfillFailedError):
        raise FileNotFoundError("another")
