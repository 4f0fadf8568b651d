"""Bringing a deepening to its end: what takes long is done while the engine goes on, the rest in its turns."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from railgun.engine.deepening import Deepening
from railgun.engine.engine_streams import EngineStreams
from railgun.engine.live_stream import LiveStream
from railgun.task.settings import TaskSettings
from railgun.unit.shadow import close_all

_BETWEEN_S = 0.005


def install(call: Callable[[], AbstractContextManager[None]], streams: EngineStreams, stream: str) -> None:
    """Returns once a stream's tasks are those that were built. call: a turn of the engine's.

    Raises HistoryRefusedError, HistoryDamagedError, what tasks raise: it can be done again, and goes on where it was.
    EngineStoppedError.
    """
    with call():
        deepening, settings = streams.installing(stream)
    try:
        # After a failure they may have taken over already: the rest is left to do.
        if settings is not None:
            _follow(call, streams, deepening, settings)
            _taken_over(call, streams, deepening).close()
        while not _is_durable(call, streams, deepening):
            time.sleep(_BETWEEN_S)
        deepening.move()
        with call():
            streams.installed(deepening)
    except BaseException:
        with call():
            streams.not_installed(deepening, settings)
        raise
    deepening.remove()


def _follow(
    call: Callable[[], AbstractContextManager[None]],
    streams: EngineStreams,
    deepening: Deepening,
    settings: TaskSettings,
) -> None:
    deepening.bring()
    shadows = streams.deepenings.open(deepening, settings)
    try:
        with call():
            streams.deepenings.follow(deepening, shadows)
    except BaseException:
        close_all(shadows)
        raise


def _taken_over(
    call: Callable[[], AbstractContextManager[None]], streams: EngineStreams, deepening: Deepening
) -> LiveStream:
    """What the new tasks have replaced."""
    while True:
        with call():
            replaced = streams.take_over(deepening)
        if replaced is not None:
            return replaced
        time.sleep(_BETWEEN_S)


def _is_durable(
    call: Callable[[], AbstractContextManager[None]], streams: EngineStreams, deepening: Deepening
) -> bool:
    with call():
        return streams.is_durable(deepening)
