"""The fetches that a node's units have ordered: some run at once, the others wait for their turn.

The transfer process has one `Fetches`.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from railgun.node.relay import Fetch, Fetched, Fetching, Message, StopFetch
from railgun.transfer.fetch import FetchSetting, StoppedError, TaskFetch
from railgun.transfer.limits import FETCHES_MAX

# A unit asks again if it hears nothing for 10 s.
_TELL_S = 2.0
# How often a unit is told how many bytes have come.
_PROGRESS_S = 0.5
# A node that has just begun says within this time where it serves snapshots.
_SERVES_S = 10.0

_log = logging.getLogger("railgun.transfer")


class _Job:
    """A fetch that runs. ended: its outcome; None if it was stopped."""

    def __init__(self, unit: str, fetch: TaskFetch) -> None:
        self.unit, self.fetch = unit, fetch
        self.ended: Fetched | None = None
        self.thread = threading.Thread(target=self._run, name="fetch", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.ended = self.fetch.run()
        except StoppedError:
            return
        except Exception as error:  # noqa: BLE001 - the unit would wait for the end for ever
            _log.exception("the data of %s is not fetched", self.fetch.order.task)
            text = " ".join(f"{type(error).__name__}: {error}".split())
            self.ended = Fetched(self.fetch.order.task, text)


class _Waiting(NamedTuple):
    """An order whose fetch has not begun. unit: who gave it.  since_s: when it came."""

    unit: str
    order: Fetch
    since_s: float


class Fetches:
    """Takes the orders of units, and tells them how far their fetches have come.

    Any thread may call `order` and `stop`; one thread calls `step`.
    send: sends a message to a unit.
    """

    def __init__(
        self,
        setting: FetchSetting,
        send: Callable[[str, Message], object],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._setting, self._send, self._now_s = setting, send, now_s
        self._lock = threading.Lock()
        # By task. An order of a task whose fetch is being stopped waits too.
        self._waiting: dict[str, _Waiting] = {}
        self._running: dict[str, _Job] = {}
        self._told: dict[str, tuple[Fetching, float]] = {}

    def order(self, unit: str, order: Fetch) -> None:
        """Take an order. One that is there already continues. unit: who gave it."""
        with self._lock:
            running = self._running.get(order.task)
            if running is None or running.fetch.is_stopped:
                before = self._waiting.get(order.task)
                since_s = self._now_s() if before is None else before.since_s
                self._waiting[order.task] = _Waiting(unit, order, since_s)
            else:
                running.unit = unit
            # The unit may be another process by now, which has heard nothing.
            self._told.pop(order.task, None)

    def stop(self, unit: str, order: StopFetch) -> None:
        """Take an order back, unless another unit has given it since. unit: who takes it back."""
        with self._lock:
            waiting, running = self._waiting.get(order.task), self._running.get(order.task)
            if waiting is not None and waiting.unit == unit:
                del self._waiting[order.task]
            if running is not None and running.unit == unit:
                running.fetch.stop()

    def step(self) -> None:
        """Begin what may begin, and tell units what is new."""
        with self._lock:
            for task, job in list(self._running.items()):
                if not job.thread.is_alive():
                    del self._running[task]
                    self._end(task, job)
            self._give_back()
            while len(self._running) < FETCHES_MAX and (begun := self._next()) is not None:
                unit, order, _ = self._waiting.pop(begun)
                self._running[begun] = _Job(unit, TaskFetch(order, self._setting))
                self._setting.figures.add("fetches_running")
            for task, waiting in self._waiting.items():
                self._tell(waiting.unit, Fetching(task))
            for job in self._running.values():
                if not job.fetch.is_stopped:
                    self._tell(job.unit, job.fetch.progress)

    def close(self) -> None:
        """Stop all fetches, and wait for a moment until they have ended."""
        with self._lock:
            self._waiting.clear()
            running = list(self._running.values())
        for job in running:
            job.fetch.stop()
        for job in running:
            job.thread.join(1.0)

    def _next(self) -> str | None:
        """Return the task whose fetch begins next; None if none may. One from a donor that gives nothing at present
        comes first, so that the tasks of a lost disk come from several donors at once.
        """
        may = [
            task
            for task, waiting in self._waiting.items()
            if task not in self._running and not self._serves_none(waiting.order)
        ]
        giving = {_donor(job.fetch.order, job.fetch.progress) for job in self._running.values()}
        return min(may, key=lambda task: _donor(self._waiting[task].order) in giving, default=None)

    def _give_back(self) -> None:
        """End the orders whose donors all serve no snapshots: none of them has to wait for its turn to fail."""
        now_s = self._now_s()
        for task, (unit, order, since_s) in list(self._waiting.items()):
            if now_s - since_s >= _SERVES_S and self._serves_none(order):
                del self._waiting[task]
                self._told.pop(task, None)
                self._setting.figures.add("fetches_failed_total")
                nodes = ", ".join(dict.fromkeys(node for node, _ in order.donors))
                self._send(unit, Fetched(task, f"no donor serves snapshots: {nodes}", is_final=True))

    def _serves_none(self, order: Fetch) -> bool:
        return bool(order.donors) and self._setting.serve_none(node for node, _ in order.donors)

    def _end(self, task: str, job: _Job) -> None:
        self._told.pop(task, None)
        figures = self._setting.figures
        figures.add("fetches_running", -1)
        if job.ended is not None:
            figures.add("fetches_failed_total" if job.ended.error else "fetches_total")
            self._send(job.unit, job.ended)

    def _tell(self, unit: str, now: Fetching) -> None:
        told, at_s = self._told.get(now.task, (None, 0.0))
        now_s = self._now_s()
        is_new = told is None or (now.donor, now.total) != (told.donor, told.total)
        if is_new or now_s - at_s >= (_TELL_S if now == told else _PROGRESS_S):
            self._told[now.task] = now, now_s
            self._send(unit, now)


def _donor(order: Fetch, progress: Fetching | None = None) -> str:
    """Return the node from which a fetch gets its data, or will first ask for it."""
    if progress is not None and progress.donor:
        return progress.donor.rpartition("/")[0]
    return order.donors[0][0] if order.donors else ""
