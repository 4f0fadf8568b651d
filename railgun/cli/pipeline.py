"""Threads beside the main one: a producer that runs ahead and a consumer that follows, both bounded."""

import queue
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")

_POLL_S = 0.1


class _End:
    """Nothing comes after it; `error` is why, if anything is wrong."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Ahead(Generic[T]):
    """Iterates once over items that another thread makes, at most `depth` of them waiting.

    What goes wrong there is raised here, in its place. Leaving the `with` block stops the other thread,
    which begins with the iteration, so inside the block: a signal's exception finds no thread that nobody
    ends. One that still reads while the interpreter goes away brings the process down.
    """

    def __init__(self, items: Iterator[T], depth: int) -> None:
        self._items = items
        self._queue: queue.Queue[T | _End] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="reader", daemon=True)

    def __iter__(self) -> Iterator[T]:
        self._thread.start()
        while True:
            item = self._queue.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item

    def __enter__(self) -> "Ahead[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        # One that is not alive yet, its start interrupted, sees first of all that it is to stop.
        if self._thread.is_alive():
            self._thread.join()

    def _produce(self) -> None:
        if self._stopped.is_set():
            return
        error: BaseException | None = None
        try:
            for item in self._items:
                if not self._put(item):
                    return
        except BaseException as raised:  # noqa: BLE001 - it is raised again in the thread that waits
            error = raised
        self._put(_End(error))

    def _put(self, item: T | _End) -> bool:
        """False where nobody wants any more."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False


class Behind(Generic[T]):
    """Hands items to a function that another thread calls, at most `depth` of them waiting.

    What goes wrong there is raised by the next `put`, or on leaving the `with` block, which waits for the
    last item; after an error of the block's own the items still waiting are dropped.
    """

    def __init__(self, consume: Callable[[T], None], depth: int) -> None:
        self._consume = consume
        self._queue: queue.Queue[T | None] = queue.Queue(depth)
        self._error: BaseException | None = None
        self._dropping = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Waits while `depth` items wait. Raises what the function raised."""
        if self._error is not None:
            raise self._error
        self._queue.put(item)

    def __enter__(self) -> "Behind[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._dropping = kind is not None
        self._queue.put(None)
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._dropping or self._error is not None:
                continue
            try:
                self._consume(item)
            except BaseException as raised:  # noqa: BLE001 - it is raised again in the thread that puts
                self._error = raised
