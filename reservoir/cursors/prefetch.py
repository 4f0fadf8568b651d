"""The background thread that decodes chunks ahead of the cursors."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from reservoir.cursors.held_frame import HeldFrame

# Reads and decodes one chunk; may run on another thread.
Decode = Callable[[], HeldFrame]
# A chunk that is being decoded in the background.
Ahead = Future[HeldFrame]

# The thread rests behind what it decodes at leisure: a multiple of what that took, within bounds. Where many wait the
# rests are shorter, about so long in all: whoever waits for the last of them does not give up.
_REST_SHARE, _REST_MOST_S, _REST_ALL_S = 3.0, 0.01, 0.2


class Prefetcher:
    """One thread that decodes ahead, in the order asked."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[tuple[Future[HeldFrame], Decode]] = deque()
        self._leisurely: deque[tuple[Future[HeldFrame], Decode]] = deque()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="chunk-prefetch", daemon=True)
        self._thread.start()

    def submit(self, decode: Decode, *, at_leisure: bool = False) -> "Future[HeldFrame]":
        """Decode in the background. at_leisure: behind what is not, and with rests."""
        future: Future[HeldFrame] = Future()
        with self._changed:
            (self._leisurely if at_leisure else self._queue).append((future, decode))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Finish what is in work and stop the thread. Nobody waits for what has not begun."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        for future, _ in (*self._queue, *self._leisurely):
            future.cancel()
            future.set_running_or_notify_cancel()

    def _run(self) -> None:
        rest_until_s = 0.0
        while True:
            with self._changed:
                rest_s = rest_until_s - time.monotonic()
                if rest_s > 0:
                    self._changed.wait_for(lambda: self._queue or self._closing, rest_s)
                self._changed.wait_for(lambda: self._queue or self._leisurely or self._closing)
                if self._closing:
                    return
                is_leisurely = not self._queue
                future, decode = (self._queue or self._leisurely).popleft()
            if not future.set_running_or_notify_cancel():
                continue
            begun_s = time.monotonic()
            try:
                future.set_result(decode())
            except BaseException as error:  # noqa: BLE001  (raised where the result is used)
                future.set_exception(error)
            if is_leisurely:
                now_s, most_s = time.monotonic(), min(_REST_MOST_S, _REST_ALL_S / (1 + len(self._leisurely)))
                rest_until_s = now_s + min(_REST_SHARE * (now_s - begun_s), most_s)
