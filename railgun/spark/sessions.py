"""Frames kept while a check lasts, and sessions set as its SQL means them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from railgun.spark.worker_errors import JAVA_ENDED

VALIDATION = {
    # It moves constants across additions that give null beyond 64 bits, and so past or before the overflow.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ReorderAssociativeOperator",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.windowExec.buffer.spill.threshold": "200000",
    # What is kept is read again within the minute: a quarter more of disk is cheaper than trying codecs on each column.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Spark writes down the whole plan of each query, and in it those of what is kept: that alone can fill the heap.
    "spark.sql.maxPlanStringLength": "10000",
}
"""What a session of validation is set to, before anything else: the meaning of SQL depends on it."""

_SHUFFLE_ROWS = 200_000


def own_session(spark: SparkSession, settings: Mapping[str, str] = VALIDATION) -> SparkSession:
    """A session of one's own beside one that is there, set as given."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


@contextmanager
def afterwards(undo: Callable[[], object]) -> Iterator[None]:
    """Tell Spark what is to be undone after a block, unless it was interrupted, or Java has ended.

    Whoever is interrupted may stand in the middle of a call to Spark: another one would get that call's answer. Spark
    ends with the process.
    """
    try:
        yield
    except JAVA_ENDED:
        raise
    except Exception:
        undo()
        raise
    undo()


@contextmanager
def in_force(session: SparkSession) -> Iterator[None]:
    """A session is the active one for as long as the block lasts.

    PySpark's mapInArrow looks columns up by name as the active session has it, and not as the frame's own: only where
    both tell upper case from lower may names differ in that alone.
    """
    java_sessions: Any = session._get_j_spark_session_class(session._jvm)
    before = java_sessions.getActiveSession()
    java_sessions.setActiveSession(session._jsparkSession)
    with afterwards(lambda: _set_active(java_sessions, before)):
        yield


def _set_active(java_sessions: Any, session: Any) -> None:
    if session.isDefined():
        java_sessions.setActiveSession(session.get())
    else:
        java_sessions.clearActiveSession()


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame on disk for as long as the block lasts."""
    held = frame.persist(StorageLevel.DISK_ONLY)
    with afterwards(held.unpersist):
        yield held


@contextmanager
def kept_alone(frame: DataFrame) -> Iterator[DataFrame]:
    """As `kept`, for what other frames are made of: their plans begin with what is kept, and not with how it was made.

    At each step of each query Spark goes through the plans of all that is kept, as often as it stands in others: of
    kept frames made of kept frames this took minutes. What is lost with an executor is made again all the same.
    """
    with kept(frame) as held:
        session = held.sparkSession
        rows: Any = held._jdf.queryExecution().toRdd()
        made = session._jsparkSession.internalCreateDataFrame(rows, held._jdf.schema(), False)
        yield ClassicFrame(made, session)


def divide(session: SparkSession, events: int) -> None:
    """As many shuffle partitions as keep each in bounds."""
    partitions = max(session.sparkContext.defaultParallelism, events // _SHUFFLE_ROWS)
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
