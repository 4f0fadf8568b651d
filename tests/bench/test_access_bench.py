"""The bench of access runs: each event is scored on the short way, with a token and without."""

from bench.access import CASES
from bench.report import Report


def test_it_has_its_figures() -> None:
    report = Report(1, 0.01)
    CASES["single"](report)
    figures = report.figures
    assert set(figures) == {"event_us", "event_with_token_us", "token_extra_us", "samples_extra_us"}
    assert figures["event_us"] > 0


def test_a_look_at_what_was_answered_has_its_figure() -> None:
    report = Report(1, 0.01)
    CASES["sampled"](report)
    assert set(report.figures) == {"answered_ms_a_second"}
    assert report.figures["answered_ms_a_second"] > 0
