"""The background thread that decodes chunks ahead of the cursors."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from reservoir.held_frame import HeldFrame

# Reads and decodes one chunk; may run on another thread.
Decode = Callable[[], HeldFrame]
# A chunk that is being decoded in the background.
Ahead = Future[HeldFrame]


class Prefetcher:
    """One thread that decodes ahead, in the order asked."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[tuple[Future[HeldFrame], Decode]] = deque()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="chunk-prefetch", daemon=True)
        self._thread.start()

    def submit(self, decode: Decode) -> "Future[HeldFrame]":
        """Decode in the background."""
        future: Future[HeldFrame] = Future()
        with self._changed:
            self._queue.append((future, decode))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Finish what is in work and stop the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if self._closing:
                    return
                future, decode = self._queue.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(decode())
            except BaseException as error:  # noqa: BLE001  (raised where the result is used)
                future.set_exception(error)
