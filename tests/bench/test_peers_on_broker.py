"""Peers that read and write topics of a real broker: their results, what they and the broker use, an end in time."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.children import ChildFailedError
from bench.kept_results import read
from bench.peers import on_broker
from bench.peers.catalog import PEERS, Peer, beside
from bench.peers.kept_run import KeptRun
from bench.peers.measuring import TooSlowError, boundary_shift_ms, measured
from bench.peers.pacing import paced
from bench.peers.protocol import Task, metric_names, reply
from bench.peers.work import WORKS
from bench.report import Report

SMALL = replace(WORKS["ten_10"], held=500, measured=1_000)
CONSUMER = PEERS["consumer_deque"]


def planted(fault: str) -> Peer:
    """A consumer with deques, with a fault."""
    return Peer("planted", "tests.bench.planted_peer_on_broker", (fault,), on_broker=True)


def test_a_peer_on_a_broker_has_its_figures_and_those_of_the_broker() -> None:
    assert boundary_shift_ms(CONSUMER) == 0
    figures = measured([CONSUMER], SMALL, 2, {CONSUMER.name: 0})
    assert (figures["measured_events"], figures["compared_events"]) == (1_000, 500)
    assert 0 < figures["largest_error"] < 1e-9
    for key in ("events_per_s", "cpu_us_per_event", "broker_cpu_us_per_event"):
        assert figures[key] > 0
    assert "broker_written_bytes_per_event" in figures, "none where its folder is in memory"


def test_single_events_at_a_rate_have_their_latencies() -> None:
    figures = paced([CONSUMER, *beside(CONSUMER)], SMALL, 2, {CONSUMER.name: 0, beside(CONSUMER)[0].name: 0})
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["p999_ms"]
    assert figures["railgun_topics_over_p50_ms"] > 0


def test_a_result_that_comes_late_is_as_late_as_it_comes() -> None:
    """It takes 10 ms for each event, so two seconds of events take ten."""
    slow = planted("slow")
    figures = paced([slow], replace(SMALL, windows_ms=(3_600_000,), held=50), 1, {slow.name: 0})
    assert figures["p999_ms"] > 6_000


def test_this_engine_from_topic_to_topic_is_exact() -> None:
    (ours,) = beside(CONSUMER)
    figures = measured([ours], SMALL, 1, {ours.name: 0})
    assert (figures["exact_share"], figures["compared_events"]) == (1, 500)


def test_two_results_of_an_event_are_an_error() -> None:
    with pytest.raises(ChildFailedError, match="two results of event"):
        boundary_shift_ms(planted("twice"))


def test_a_peer_that_does_not_keep_up_is_stopped_and_its_rate_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_broker, "LIMIT_S", 3.0)
    slow = planted("slow")
    with pytest.raises(TooSlowError, match=r"planted filled its windows at \d+ events/s: stopped after"):
        measured([slow], SMALL, 1, {slow.name: 0})

    monkeypatch.setattr(on_broker, "LIMIT_S", 60.0)
    KeptRun(Report(1, 1.0), tmp_path, [], False).measure(slow, [])
    monkeypatch.setattr(on_broker, "LIMIT_S", 3.0)
    KeptRun(Report(1, 1.0), tmp_path, [], False).measure(slow, [SMALL])
    (path,) = tmp_path.iterdir()
    kept = read(path)
    assert "stopped after" in kept.not_run["planted.ten_10"]
    assert 0 < kept.figures["planted.ten_10.filling_events_per_s"] < 110
    assert kept.has("planted.ten_10", ""), "it is not measured again"


def test_a_task_and_a_reply_have_all_that_a_peer_needs(tmp_path: Path) -> None:
    task = Task(tmp_path / "a", tmp_path / "b", (1, 2), 3, tmp_path, "127.0.0.1:1", "p")
    assert Task.of_text(task.as_text()) == task
    assert (task.input, task.output) == ("p.payments.in", "p.payments.out")
    made = reply("t1", enumerate([(1, 2.0, 2.0), (2, 5.0, 2.5)]))
    assert made == {"id": "t1", "metrics": {"c0": 1, "s0": 2.0, "a0": 2.0, "c1": 2, "s1": 5.0, "a1": 2.5}}
    assert list(made["metrics"]) == metric_names(2)
