"""The peer that anyone writes first: a dictionary of deques in memory. No recovery, no late events, rounded sums."""

import json
from collections import deque
from collections.abc import Callable

from bench.peers.protocol import Task, serve


class _Window:
    """The events of a card that one window holds, with their running sum."""

    __slots__ = ("amounts", "sum")

    def __init__(self) -> None:
        self.amounts: deque[tuple[int, float]] = deque()
        self.sum = 0.0


class DictDeque:
    """One deque for each card and window."""

    def __init__(self, task: Task) -> None:
        self._windows_ms = task.windows_ms
        self._events = task.events.open("rb")
        self._results = task.results.open("w", encoding="utf-8")
        self._cards: dict[str, list[_Window]] = {}

    def prepare(self, events: int) -> Callable[[], None]:
        """Return what processes the next events."""

        def process() -> None:
            for _ in range(events):
                self._take(self._events.readline())
            self._results.flush()

        return process

    def close(self) -> None:
        """Close both files."""
        self._events.close()
        self._results.close()

    def _take(self, line: bytes) -> None:
        event = json.loads(line)
        time_ms, amount = event["ts"], event["amount"]
        windows = self._cards.get(event["card"])
        if windows is None:
            windows = self._cards[event["card"]] = [_Window() for _ in self._windows_ms]
        found = [event["tx_id"]]
        for window, window_ms in zip(windows, self._windows_ms, strict=True):
            amounts = window.amounts
            while amounts and amounts[0][0] <= time_ms - window_ms:
                window.sum -= amounts.popleft()[1]
            amounts.append((time_ms, amount))
            window.sum += amount
            count = len(amounts)
            found.append(f"{count},{window.sum!r},{window.sum / count!r}")
        self._results.write(",".join(found) + "\n")


if __name__ == "__main__":
    serve(DictDeque)
