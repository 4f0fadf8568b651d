"""The bench of TLS runs: events are answered with it and without, and beside connections that say nothing."""

import pytest

from bench import tls
from bench.report import Report


def test_the_event_loop_alone() -> None:
    report = Report(1, 0.01)
    tls.CASES["loop"](report)
    assert set(report.figures) == {"loop_plain_us", "loop_tls_us", "loop_tls_added_us"}
    assert min(report.figures["loop_plain_us"], report.figures["loop_tls_us"]) > 0


def test_kept_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "_CONNECTIONS", 8)
    report = Report(1, 0.02)
    tls.CASES["kept"](report)
    figures = report.figures
    assert {"tls_p50_ratio", "tls_p999_ratio", "tls_added_us", "tls_cpu_us_at_500"} <= set(figures)
    assert min(figures["plain_p50_ms_at_500"], figures["tls_p50_ms_at_500"]) > 0


@pytest.mark.parametrize("name", ["silent", "one-byte", "half-closed", "idle", "idle-kept"])
def test_beside_connections_that_do_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(tls, "_CONNECTIONS", 8)
    monkeypatch.setattr(tls, "_IDLE", 50)
    monkeypatch.setattr(tls, "_OPENED_WITHIN_S", 0.5)
    report = Report(1, 0.02)
    tls.CASES[name](report)
    key = name.replace("-", "_")
    assert {f"{key}_p999_ratio", f"{key}_alone_p999_ms", f"{key}_p999_ms"} <= set(report.figures)
