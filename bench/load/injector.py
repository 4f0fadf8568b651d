"""Injects load from worker processes that begin at the same moment, and merges their outcomes."""

import time
from contextlib import ExitStack
from dataclasses import replace

import msgspec

from bench.children import Child
from bench.load.order import Order
from bench.load.outcome import Outcome, merge

_BEGIN_AFTER_S = 0.05


class Injection:
    """Workers that have prepared an order; `start` lets them begin, `outcome` waits for their end.

    Raises ChildFailedError where a worker cannot prepare or ends before it answers.
    """

    def __init__(self, order: Order, workers: int = 1) -> None:
        self.order = order
        with ExitStack() as stack:
            self._workers = [stack.enter_context(Child("bench.load.worker", [])) for _ in range(workers)]
            for place, worker in enumerate(self._workers):
                worker.tell(msgspec.json.encode(replace(order, worker=place, workers=workers)).decode())
            for worker in self._workers:
                worker.answer()
            self._stack = stack.pop_all()

    def start(self) -> int:
        """Let the workers begin in a moment. Returns when, on the monotonic clock, in ns."""
        start_ns = time.monotonic_ns() + int(_BEGIN_AFTER_S * 1e9)
        for worker in self._workers:
            worker.tell(str(start_ns))
        return start_ns

    def outcome(self) -> Outcome:
        """Wait for the end of all workers, and return the merged outcome."""
        with self._stack:
            return merge(Outcome.from_json(worker.answer()) for worker in self._workers)

    def stop(self) -> None:
        """End the workers, whatever they are doing."""
        with self._stack:
            for worker in self._workers:
                worker.process.kill()


def inject(order: Order, workers: int = 1) -> Outcome:
    """Inject all of an order, wait for it, and return the outcome. Raises ChildFailedError."""
    injection = Injection(order, workers)
    injection.start()
    return injection.outcome()
