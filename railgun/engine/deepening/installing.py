"""Installs a deepening (older events for a live stream) in turns of the engine, which continues meanwhile."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from railgun.engine.deepening.steps import DeepeningSteps
from railgun.registry.origin import Origin

_BETWEEN_S = 0.005


def install(
    call: Callable[[], AbstractContextManager[None]], steps: DeepeningSteps, stream: str, origin: Origin
) -> None:
    """Install a stream's deepening. Returns once the successors have taken over and their places point to their new
    folders.

    call: makes a context manager that holds the engine's lock for one call.
    origin: who asks for it.
    Raises HistoryRefusedError, HistoryDamagedError, EngineStoppedError, and what tasks raise. A later call continues
    from where this one stopped.
    """
    with call():
        deepening = steps.begin_installing(stream)

    def until(step: Callable[[], bool]) -> None:
        while True:
            with call():
                if step():
                    return
            time.sleep(_BETWEEN_S)

    try:
        until(lambda: steps.take_over(deepening, origin))
        until(lambda: steps.is_settled(deepening))
        with call():
            steps.finish_installing(deepening)
    except BaseException:
        with call():
            steps.installing_failed(deepening)
        raise
    deepening.remove()
