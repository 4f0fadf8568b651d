"""The peer that anyone writes first: a dictionary of deques in memory. No recovery, no late events, rounded sums."""

import json
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from bench.peers.protocol import Task, WindowValues, serve


class _Window:
    """The events of a card that one window holds, with their running sum."""

    __slots__ = ("amounts", "sum")

    def __init__(self) -> None:
        self.amounts: deque[tuple[int, float]] = deque()
        self.sum = 0.0


class Cards:
    """One deque for each card and window."""

    def __init__(self, windows_ms: Sequence[int]) -> None:
        self._windows_ms = windows_ms
        self._cards: dict[str, list[_Window]] = {}

    def add(self, event: dict[str, Any]) -> list[WindowValues]:
        """Take an event, and return the values of its card's windows."""
        time_ms, amount = event["ts"], event["amount"]
        windows = self._cards.get(event["card"])
        if windows is None:
            windows = self._cards[event["card"]] = [_Window() for _ in self._windows_ms]
        found = []
        for window, window_ms in zip(windows, self._windows_ms, strict=True):
            amounts = window.amounts
            while amounts and amounts[0][0] <= time_ms - window_ms:
                window.sum -= amounts.popleft()[1]
            amounts.append((time_ms, amount))
            window.sum += amount
            count = len(amounts)
            found.append((count, window.sum, window.sum / count))
        return found


class DictDeque:
    """Reads the events and writes the results of a task."""

    def __init__(self, task: Task) -> None:
        self._cards = Cards(task.windows_ms)
        self._events = task.events.open("rb")
        self._results = task.results.open("w", encoding="utf-8")

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
        found = [event["tx_id"]]
        found += [f"{count},{total!r},{average!r}" for count, total, average in self._cards.add(event)]
        self._results.write(",".join(found) + "\n")


if __name__ == "__main__":
    serve(DictDeque)
