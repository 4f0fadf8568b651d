"""The process that the recovery bench kills: opens a folder, answers, and loads events until it ends.

python -m bench.killing_child FOLDER SCALE EVENTS_PER_S (0: as many as it can)
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import psutil
import pyarrow as pa

from bench.children import say
from bench.killing import INTERVAL_S
from bench.payments import Payments, blocks
from bench.process import orphaned
from bench.unit_cases import THROUGHPUT

_EVENTS, _CARDS = 5_000_000, 1_000_000
_WINDOW_MS = 1_000_000
_LIVE_ROWS, _FULL_ROWS = 1_000, 16_384


class Clocks:
    """Counts the seconds spent in watched functions, by name, over all threads."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def watch(self, owner: Any, function: str, name: str) -> None:
        """Count the time in a function from now on."""
        watched: Callable[..., Any] = getattr(owner, function)
        self.seconds[name] = 0.0

        @wraps(watched)
        def timed(*arguments: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            try:
                return watched(*arguments, **named)
            finally:
                self.seconds[name] += time.perf_counter() - begun

        setattr(owner, function, timed)


def main(folder: str, scale: str, pace_per_s: str) -> None:
    """Open, answer one event, print the times; load missing events; then answer events at the pace until killed."""
    from railgun.engine.engine import Engine
    from railgun.host.task_log import TaskLog
    from railgun.state.store import Store

    imports_s = time.time() - psutil.Process().create_time()
    clocks = Clocks()
    clocks.watch(Store, "recover", "undo_s")
    clocks.watch(TaskLog, "catch_up", "replay_s")
    share = min(1.0, float(scale))
    cards = max(1_000, int(_CARDS * share))
    payments = Payments(10**11, cards=cards, card_exponent=0.0, rate_per_s=2_000.0, rhythm=False)
    definitions = replace(THROUGHPUT["payments_1x3"], window_ms=_WINDOW_MS).definitions
    begun = time.perf_counter()
    with Engine(folder, durability="os") as engine:
        opened_s = time.perf_counter() - begun
        known = bool(engine.streams())
        if not known:
            engine.apply(definitions)
        (task,) = [host.task for host in engine._streams.live("payments").hosts]
        position, durable = task.position, task.checkpoints.durable_position
        engine.score("payments", _probe(payments, position))
        times = {
            "recovery_s": time.perf_counter() - begun,
            "imports_s": imports_s,
            "opening_s": opened_s - clocks.seconds["undo_s"] - clocks.seconds["replay_s"],
        }
        say(times | clocks.seconds | {"events": position, "replayed": max(0, position - durable)})
        _Load(engine, task, payments, int(pace_per_s)).go(int(_EVENTS * share), INTERVAL_S * share)


def _probe(payments: Payments, position: int) -> dict[str, object]:
    """Return an event at a time as new as that of any other."""
    time_ms = payments.start_ms + int(position / payments.rate_per_s * 1000)
    return {"tx_id": f"probe{position}", "ts": time_ms, "card": "c000000001", "merchant": "m", "amount": 1.0}


class _Load:
    """Loads the events that the engine does not have yet: at full speed at first, then at a pace."""

    def __init__(self, engine: Any, task: Any, payments: Payments, pace_per_s: int) -> None:
        self._engine, self._task, self._payments, self._pace_per_s = engine, task, payments, pace_per_s
        self._due_s = 0.0

    def go(self, events: int, interval_s: float) -> None:
        """Until killed. Says when it is steady: a checkpoint that began after the loading is durable, and a whole
        interval has passed since."""
        first, made, steady_s = self._task.position, 0, float("inf")
        loaded = 0
        for block in blocks(self._payments):
            made += block.num_rows
            if made <= first:
                continue
            if made <= events:
                self._engine.score_table("payments", pa.Table.from_batches([block]))
                continue
            if not loaded:
                loaded, self._due_s = self._task.position, time.perf_counter()
            for part in self._parts(block):
                if orphaned():
                    return
                self._engine.score_table("payments", pa.Table.from_batches([part]))
                if self._task.checkpoints.durable_position >= loaded and steady_s == float("inf"):
                    steady_s = time.perf_counter() + interval_s
                if time.perf_counter() >= steady_s:
                    say({"steady": self._task.position})
                    steady_s = float("nan")

    def _parts(self, block: pa.RecordBatch) -> Any:
        """Yield the parts of a block, each with the time at which it is due."""
        rows = _LIVE_ROWS if self._pace_per_s else _FULL_ROWS
        for start in range(0, block.num_rows, rows):
            yield block.slice(start, rows)
            if self._pace_per_s:
                self._due_s += rows / self._pace_per_s
                time.sleep(max(0.0, self._due_s - time.perf_counter()))


if __name__ == "__main__":
    main(*sys.argv[1:])
