"""A call that can stand still between any two of its steps, while everything else goes on."""

import threading
from collections.abc import Callable
from typing import Any


class _EndedError(BaseException):
    """The process is gone: nothing of the call may go on."""


class HaltableCall:
    """Does something again and again, which calls `step` before and after each of its steps.

    Only one thread runs at any time: what happens follows from the seed.
    halted: is called when it begins to stand still.
    """

    def __init__(self, do: Callable[[], object], halted: Callable[[], object]) -> None:
        self._do, self._halted = do, halted
        self._steps_left: int | None = None
        self._thread: threading.Thread | None = None
        self._goes_on, self._is_back = threading.Semaphore(0), threading.Semaphore(0)
        self._is_over = self._is_ended = False
        self._error: BaseException | None = None

    @property
    def stands_still(self) -> bool:
        """Whether it stands still amid a call."""
        return self._thread is not None

    def halt_after(self, steps: int | None) -> None:
        """Let it stand still after so many steps more. None: not at all."""
        self._steps_left = steps

    def run(self) -> None:
        """Call it, or let it go on where it stands still; return when it is over or stands still. Raises what it
        raises.
        """
        if self._thread is not None:
            self._goes_on.release()
        elif self._steps_left is None:
            self._do()
            return
        else:
            self._is_over = False
            self._thread = threading.Thread(target=self._run, name="haltable", daemon=True)
            self._thread.start()
        self._is_back.acquire()
        if self._is_over:
            self._thread.join()
            self._thread, error, self._error = None, self._error, None
            if error is not None:
                raise error

    def step(self) -> None:
        """Stand still here, if it is to."""
        if self._steps_left is None:
            return
        self._steps_left -= 1
        if self._steps_left < 0:
            self._steps_left = None
            self._halted()
            self._is_back.release()
            self._goes_on.acquire()
            if self._is_ended:
                raise _EndedError

    def end(self) -> None:
        """Let it go on nowhere."""
        self._is_ended, self._steps_left = True, None
        if self._thread is not None:
            self._goes_on.release()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            self._do()
        except BaseException as error:  # noqa: BLE001 - whoever runs it gets it
            self._error = error
        self._is_over = True
        self._is_back.release()


class Stepwise:
    """Stands in for an object, each call of which is a step."""

    def __init__(self, real: object, step: Callable[[], None]) -> None:
        self._real, self._step = real, step

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **more: Any) -> Any:
            self._step()
            result = found(*arguments, **more)
            self._step()
            return result

        return call
