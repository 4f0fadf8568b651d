"""Makes sessions with the settings that a check's SQL needs, and keeps frames on disk while a check lasts."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from railgun.spark.worker_errors import JAVA_ENDED

VALIDATION = {
    # This rule moves constants across additions that give null beyond 64 bits, so they overflow elsewhere or
    # not at all.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ReorderAssociativeOperator",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.windowExec.buffer.spill.threshold": "200000",
    # Kept frames are read again within a minute. A quarter more of disk is cheaper than trying codecs on each column.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Spark writes down the plan of each query, including those of kept frames. That alone could fill the heap.
    "spark.sql.maxPlanStringLength": "10000",
}
"""The settings of a session of validation. They come first, because the meaning of SQL depends on them."""

_SHUFFLE_ROWS = 200_000


def own_session(spark: SparkSession, settings: Mapping[str, str] = VALIDATION) -> SparkSession:
    """Return a new session beside an existing one, with these settings."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


@contextmanager
def afterwards(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` after the block, unless the block was interrupted or Java has ended.

    An interrupt may come in the middle of a call to Spark. A further call would get the answer of that one. Spark ends
    with the process anyway.
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
    """Make a session the active one until the block is left.

    PySpark's mapInArrow looks up columns by the rules of the active session, not of the frame's own. Names may differ
    in case alone only if both sessions are sensitive to case.
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
    """Keep a frame on disk until the block is left."""
    held = frame.persist(StorageLevel.DISK_ONLY)
    with afterwards(held.unpersist):
        yield held


@contextmanager
def kept_alone(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame on disk as `kept` does, so that plans of frames made from it begin with the kept rows.

    At each step of each query Spark goes through the plans of all kept frames, once for each time they occur in others.
    With kept frames made of kept frames that took minutes. Rows that are lost with an executor are still made again.
    """
    with kept(frame) as held:
        session = held.sparkSession
        rows: Any = held._jdf.queryExecution().toRdd()
        made = session._jsparkSession.internalCreateDataFrame(rows, held._jdf.schema(), False)
        yield ClassicFrame(made, session)


def divide(session: SparkSession, events: int) -> None:
    """Set the number of shuffle partitions so that none has too many events."""
    partitions = max(session.sparkContext.defaultParallelism, events // _SHUFFLE_ROWS)
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
