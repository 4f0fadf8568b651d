"""Installs a deepening (older events for a live stream) by many short calls of the engine, between which it processes
events. `Engine` calls it.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from railgun.engine.deepening.steps import DeepeningSteps
from railgun.registry.origin import Origin

_BETWEEN_S = 0.005


def install(
    locked: Callable[[], AbstractContextManager[None]], steps: DeepeningSteps, stream: str, origin: Origin
) -> None:
    """Install a stream's deepening. Returns once the new tasks, which have the older events, have replaced the stream's
    tasks, also in their folders.

    locked: makes a context manager that holds the engine's lock for one call.
    origin: who asks for the deepening.
    Raises HistoryRefusedError, HistoryDamagedError, EngineStoppedError, and what tasks raise. A later call continues
    from where this one stopped.
    """
    with locked():
        deepening = steps.begin_installing(stream)

    def until(step: Callable[[], bool]) -> None:
        while True:
            with locked():
                if step():
                    return
            time.sleep(_BETWEEN_S)

    try:
        until(lambda: steps.take_over(deepening, origin))
        until(lambda: steps.is_settled(deepening))
        with locked():
            steps.finish_installing(deepening)
    except BaseException:
        with locked():
            steps.installing_failed(deepening)
        raise
    deepening.remove()
