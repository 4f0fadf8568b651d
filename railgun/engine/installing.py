"""Bringing a live backfill to its end: in turns of the engine, which goes on meanwhile."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from railgun.engine.engine_streams import EngineStreams
from railgun.registry.origin import Origin

_BETWEEN_S = 0.005


def install(
    call: Callable[[], AbstractContextManager[None]], streams: EngineStreams, stream: str, origin: Origin
) -> None:
    """Install a stream's deepening. Returns once the successors have taken over and their places point to their new
    folders.

    call: makes a context manager that holds the engine's lock for one call.
    origin: who asks for it.
    Raises HistoryRefusedError, HistoryDamagedError, EngineStoppedError, and what tasks raise. A later call goes on
    from where this one stopped.
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
        until(lambda: streams.take_over(backfill, origin))
        until(lambda: streams.is_settled(backfill))
        with call():
            streams.finish_installing(backfill)
    except BaseException:
        with call():
            streams.installing_failed(backfill)
        raise
    backfill.remove()
