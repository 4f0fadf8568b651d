"""Measures an engine that is killed under load: how long until it answers again, and the parts of that time."""

import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.children import Child
from bench.report import Report

INTERVAL_S = 10.0
PACES_PER_S = {"recovery": 20_000, "recovery_full_load": 0}
_PARTS = ("imports", "opening", "undo", "replay")


def measure(report: Report) -> None:
    """`recovery_s` and `recovery_full_load_s`: from opening the folder to the first answer; `…_with_start_s`: with
    the start of Python."""
    folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
    after = random.Random(1)
    try:
        for key, pace_per_s in PACES_PER_S.items():
            found = _killed(report, folder / "data", pace_per_s, after)
            replayed = ", ".join(f"{each['replayed']:,.0f}" for each in found)
            remark = f"   {found[-1]['events']:,.0f} events; replayed: {replayed}"
            report.note(f"{key}_s", [each["recovery_s"] for each in found], 3, remark)
            report.note(f"{key}_with_start_s", [each["whole_s"] for each in found], 3, f"   {_parts(found)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _killed(report: Report, data: Path, pace_per_s: int, after: random.Random) -> list[dict[str, Any]]:
    """Return the answers of the starts that came after a kill."""
    found: list[dict[str, Any]] = []
    for run in range(report.runs + 1):
        begun = time.perf_counter()
        with Child("bench.killing_child", [str(data), str(report.scale), str(pace_per_s)]) as child:
            answer = child.answer()
            answer["whole_s"] = time.perf_counter() - begun
            if run:
                found.append(answer)
            if run < report.runs:
                child.answer()
                # The load is steady from here on. The kill comes at a random time of an interval.
                time.sleep(after.uniform(0.0, INTERVAL_S) * min(1.0, max(0.1, report.scale)))
            child.process.kill()
    return found


def _parts(found: Sequence[dict[str, Any]]) -> str:
    means = {part: sum(each[f"{part}_s"] for each in found) / len(found) for part in _PARTS}
    said = ", ".join(f"{part} {seconds:.2f}" for part, seconds in means.items())
    return f"{said} s on average"
