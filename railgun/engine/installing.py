"""Bringing a live backfill to its end: in turns of the engine, which goes on meanwhile."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from railgun.engine.engine_streams import EngineStreams

_BETWEEN_S = 0.005


def install(call: Callable[[], AbstractContextManager[None]], streams: EngineStreams, stream: str) -> None:
    """Returns once a stream's tasks are those that were built. call: a turn of the engine's.

    Raises HistoryRefusedError, HistoryDamagedError, what tasks raise: it can be done again, and goes on where it was.
    EngineStoppedError.
    """
    with call():
        backfill = streams.begin_installing(stream)

    def until(step: Callable[[], bool]) -> None:
        while True:
            with call():
                if step():
                    return
            time.sleep(_BETWEEN_S)

    try:
        until(lambda: streams.take_over(backfill))
        until(lambda: streams.is_settled(backfill))
        with call():
            streams.finish_installing(backfill)
    except BaseException:
        with call():
            streams.installing_failed(backfill)
        raise
    backfill.remove()
