"""Summarizes the JUnit file of a long run of tests in a few lines.

python -m bench.torture_summary build/torture.xml
"""

import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path


def summary(junit: Path) -> list[str]:
    """Return a line per test file with its tests, failures and seconds, then all failures, then the total."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    seconds: dict[str, float] = defaultdict(float)
    failed: list[str] = []
    for case in ET.parse(junit).iter("testcase"):
        place = case.get("classname", "")
        outcome = _outcome(case)
        outcomes[place][outcome] += 1
        seconds[place] += float(case.get("time", "0"))
        if outcome == "failed":
            failed.append(f"failed: {place}::{case.get('name')}")
    lines = [
        f"{place:50} {_counted(outcomes[place])} in {seconds[place]:,.0f} s" for place in sorted(outcomes)
    ]
    total = sum(outcomes.values(), Counter[str]())
    return [*lines, *failed, f"torture: {_counted(total)} in {sum(seconds.values()):,.0f} s of tests"]


def _outcome(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def _counted(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items())) or "no tests"


if __name__ == "__main__":
    print("\n".join(summary(Path(sys.argv[1]))))
