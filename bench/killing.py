"""An engine killed under load: how long until it answers again."""

import random
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.children import Child, say
from bench.payments import Payments, blocks
from bench.process import orphaned
from bench.report import Report
from bench.unit_cases import THROUGHPUT

_EVENTS, _CARDS = 5_000_000, 1_000_000
_LIVE_PER_S = 20_000
_LIVE_BLOCKS_PER_S = 20
_KILLED_AFTER_S = (4.0, 24.0)


def measure(report: Report) -> None:
    """`recovery_s`: from opening the folder to the first answer; with and without starting Python and kernels."""
    folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
    found: list[dict[str, Any]] = []
    after = random.Random(1)
    try:
        for run in range(report.runs + 1):
            begun = time.perf_counter()
            with Child("bench.killing", [str(folder / "data"), str(report.scale)]) as child:
                answer = child.answer()
                answer["whole_s"] = time.perf_counter() - begun
                if run:
                    found.append(answer)
                if run < report.runs:
                    child.answer()
                    time.sleep(after.uniform(*_KILLED_AFTER_S) * min(1.0, max(0.1, report.scale)))
                child.process.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.note("recovery_s", [each["recovery_s"] for each in found], 3, _remark(found))
    report.note("recovery_with_start_s", [each["whole_s"] for each in found], 3)


def _remark(found: list[dict[str, Any]]) -> str:
    replayed = ", ".join(f"{each['replayed']:,.0f}" for each in found)
    return f"   {found[-1]['events']:,.0f} events; replayed: {replayed}"


def main(folder: str, scale: str) -> None:
    """The child: open, answer one event, say how long that took; load what is missing, then events until killed."""
    from railgun.engine.engine import Engine

    share = min(1.0, float(scale))
    cards = max(1_000, int(_CARDS * share))
    payments = Payments(10**11, cards=cards, card_exponent=0.0, rate_per_s=2_000.0, rhythm=False)
    definitions = replace(THROUGHPUT["payments_1x3"], window_ms=1_000_000).definitions
    begun = time.perf_counter()
    with Engine(folder, durability="os") as engine:
        engine.apply(definitions)
        (task,) = engine._streams.live("payments")._tasks
        opened = task.position
        engine.score("payments", _probe(payments, opened))
        recovery_s = time.perf_counter() - begun
        durable = task.checkpoints.durable_position
        say({"recovery_s": recovery_s, "events": opened, "replayed": max(0, opened - durable)})
        _load(engine, payments, int(_EVENTS * share), task)


def _probe(payments: Payments, position: int) -> dict[str, object]:
    """An event as new as any other."""
    time_ms = payments.start_ms + int(position / payments.rate_per_s * 1000)
    return {"tx_id": f"probe{position}", "ts": time_ms, "card": "c000000001", "merchant": "m", "amount": 1.0}


def _load(engine: Any, payments: Payments, events: int, task: Any) -> None:
    rows = _LIVE_PER_S // _LIVE_BLOCKS_PER_S
    first = task.position
    made, live, due_s = 0, False, 0.0
    for block in blocks(payments):
        if orphaned():
            return
        made += block.num_rows
        if made <= first:
            continue
        if made <= events:
            engine.score_table("payments", pa.Table.from_batches([block]))
            continue
        if not live:
            live, due_s = True, time.perf_counter()
            say({"loaded": task.position})
        for start in range(0, block.num_rows, rows):
            engine.score_table("payments", pa.Table.from_batches([block.slice(start, rows)]))
            due_s += rows / _LIVE_PER_S
            time.sleep(max(0.0, due_s - time.perf_counter()))


if __name__ == "__main__":
    main(*sys.argv[1:])
