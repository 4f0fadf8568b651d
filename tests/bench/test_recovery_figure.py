"""The ways to recover: measured on a real cluster, and drawn as bars."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.keeping import Keeping
from bench.kept_results import Results, known
from bench.paper.budget import Budget, BudgetError
from bench.paper.claims import CLAIMS
from bench.paper.drawing import svg_of
from bench.paper.recovery import WAYS, recovery
from bench.paper.table import text_of
from bench.report import Report


@pytest.mark.torture
def test_each_way_is_measured(tmp_path: Path) -> None:
    results = known("paper-recovery", {"runs": 1, "scale": 0.01}, tmp_path)
    assert recovery(Report(1, 0.01), Keeping(results, tmp_path, False), Budget())
    assert set(results.runs) == set(WAYS)
    assert min(results.figures[f"{way}.seconds"] for way in WAYS) > 0
    assert results.figures["replay.held_events"] == 50_000


def test_ways_without_time_are_not_measured(tmp_path: Path) -> None:
    results = known("paper-recovery", {"runs": 1, "scale": 1.0}, tmp_path)
    results.note("checkpoint", "", {"seconds": 1.0})
    keeping = Keeping(results, tmp_path, False, (BudgetError,))
    assert not recovery(Report(1, 1.0), keeping, Budget(300.0))
    assert set(results.not_run) == set(WAYS) - {"checkpoint"}
    assert "600 s are needed" in results.not_run["replay"]


def test_ways_that_cannot_be_measured_again_stay_as_they_were(tmp_path: Path) -> None:
    results = known("paper-recovery", {"runs": 1, "scale": 1.0}, tmp_path)
    for way in ("takeover", "checkpoint"):
        results.note(way, "", {"seconds": 1.0})
    assert not recovery(Report(1, 1.0), Keeping(results, tmp_path, True, (BudgetError,)), Budget(300.0))
    assert results.figures == {"takeover.seconds": 1.0, "checkpoint.seconds": 1.0}
    assert set(results.not_run) == set(WAYS) - {"takeover", "checkpoint"}


def test_each_way_is_a_bar() -> None:
    machine = {"processor": "A", "cores": 2, "memory_gib": 16, "system": "L", "python": "3", "java": ""}
    found = Results("paper-recovery", {"runs": 3, "scale": 1.0}, machine)
    assert "not measured" in svg_of(found)
    figures = {"seconds_least": 0.5, "seconds_greatest": 9.5, "held_events": 5_000_000.0}
    for seconds, way in enumerate(WAYS, 1):
        found.note(way, "", figures | {"seconds": float(seconds)})
    text = svg_of(found)
    widths = [
        float(bar.attrib["width"]) for bar in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert widths[2:] == pytest.approx([widths[1] * seconds for seconds in (2, 3, 4)], rel=0.01)
    assert "a task with 5,000,000 events" in text
    assert "| `replay` | 4 | 0.5 | 9.5 | 5,000,000 |" in text_of(found)
    assert CLAIMS["recovery"][1].says in text_of(found)
