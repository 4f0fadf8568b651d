"""Notes for monitoring how long each value query took, and its outcome."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from time import perf_counter

from frontend.problems import ProblemError
from railgun.ingest.value_queries import QueryRefusedError
from railgun.telemetry.recording import StreamRecord


@contextmanager
def noted_query(record: StreamRecord) -> Iterator[None]:
    """Note the query that the block answers. To be called in the event loop's thread."""
    begun_s, outcome = perf_counter(), "unavailable"
    try:
        yield
        outcome = "answered"
    except QueryRefusedError:
        outcome = "refused"
        raise
    except ProblemError as error:
        if error.problem.status == HTTPStatus.GATEWAY_TIMEOUT:
            outcome = "timeout"
        raise
    finally:
        record.queries[outcome] += 1
        record.query_seconds.add(perf_counter() - begun_s)
