"""The bench of peers: which window each is told, what is compared, and how a run is kept and resumed."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest

from bench.children import ChildFailedError
from bench.kept_results import Results, known, read
from bench.peers import packages
from bench.peers.catalog import OURS, PEERS, Peer
from bench.peers.events import DISORDER_MS, Events, first_of, in_disorder, in_order, on_boundaries
from bench.peers.exact import Expected, compared, read_results
from bench.peers.kept_run import KeptRun
from bench.peers.measuring import WrongValuesError, boundary_shift_ms, disorder, measured
from bench.peers.protocol import reply
from bench.peers.work import WORKS
from bench.report import Report

SMALL = replace(WORKS["ten_10"], held=500, measured=1_000)


def planted(fault: str) -> Peer:
    """A peer that holds a dictionary of deques, with a fault."""
    return Peer("planted", "tests.bench.planted_peer", (fault,))


def events(*times_ms: int) -> Events:
    """Events of one card, each of the amount 0.1."""
    n = len(times_ms)
    return Events([f"t{i}" for i in range(n)], np.array(times_ms), np.zeros(n, np.int64), np.full(n, 0.1))


def test_the_ends_of_a_peers_window_say_what_it_is_told() -> None:
    assert boundary_shift_ms(PEERS["dict_deque"]) == 0
    assert boundary_shift_ms(planted("holds_both_ends")) == 1


def test_a_peer_with_another_window_is_refused() -> None:
    with pytest.raises(WrongValuesError, match=r"planted: its window of w or w - 1 ms is not \(T - w, T\]"):
        boundary_shift_ms(planted("too_long"))


def test_what_a_peer_makes_of_ties_and_disorder_is_counted() -> None:
    ours = disorder(PEERS["railgun_unit"], 0)
    assert ours["disorder_answered_share"] == ours["disorder_right_on_arrival_share"] == 1
    assert 0 < ours["disorder_right_in_the_end_share"] < 1
    deques = disorder(PEERS["dict_deque"], 0)
    assert deques["disorder_answered_share"] == 1
    assert 0 < deques["disorder_right_on_arrival_share"] < 1


def test_a_measured_peer_has_its_figures_beside_this_engine() -> None:
    peers = [PEERS["dict_deque"], *(PEERS[name] for name in OURS)]
    figures = measured(peers, SMALL, 2, dict.fromkeys([peer.name for peer in peers], 0))
    assert figures["measured_events"] == 1_000
    assert figures["compared_events"] == 500
    assert 0 < figures["events_per_s_least"] <= figures["events_per_s"] <= figures["events_per_s_greatest"]
    assert figures["cpu_us_per_event"] > 0
    assert figures["written_bytes_per_event"] > 100
    for ours in OURS:
        over = f"{ours}_over"
        assert 0 < figures[f"{over}_least"] <= figures[over] <= figures[f"{over}_greatest"]
        assert figures[f"{over}_by_cpu"] > 0
    assert figures["exact_share"] < 1, "its sums are rounded at each step"
    assert 0 < figures["largest_error"] < 1e-9


@pytest.mark.parametrize("name", OURS)
def test_the_values_of_this_engine_are_exact(name: str) -> None:
    assert boundary_shift_ms(PEERS[name]) == 0
    figures = measured([PEERS[name]], SMALL, 1, {name: 0})
    assert (figures["exact_share"], figures["largest_error"], figures["compared_events"]) == (1, 0, 500)


def test_a_peer_with_wrong_values_has_no_figures() -> None:
    with pytest.raises(WrongValuesError, match="planted: Comparison"):
        measured([planted("too_long")], replace(SMALL, windows_ms=(20_000,)), 1, {"planted": 0})


def test_a_run_is_kept_after_each_peer_and_resumed(tmp_path: Path) -> None:
    deques = PEERS["dict_deque"]

    def run(peer: Peer, again: bool = False) -> Report:
        report = Report(1, 1.0)
        KeptRun(report, tmp_path, [deques], again).measure(peer, [SMALL])
        return report

    figures = run(deques).figures
    (path,) = tmp_path.iterdir()
    first = json.loads(path.read_text())
    assert all(isinstance(value, int | float) for value in first["figures"].values())
    assert figures == first["figures"]
    assert set(first["runs"]) == {"dict_deque", "dict_deque.ten_10"}
    assert first["machine"]["cores"] >= 1

    with pytest.raises(ChildFailedError, match="planted_peer"):
        run(planted("ends"))
    failed = read(path)
    assert "ended with code 3" in failed.not_run["planted"]
    assert (failed.figures, failed.runs) == (first["figures"], first["runs"]), "it was known"

    run(replace(planted("right"), name="lacking", missing=lambda: "it is not installed"))
    assert read(path).not_run["lacking"] == "it is not installed"

    run(planted("right"))
    resumed = read(path)
    assert set(resumed.not_run) == {"lacking"}
    assert resumed.figures["planted.ten_10.dict_deque_over"] > 0
    assert resumed.figures["planted.boundary_shift_ms"] == 0
    assert {what: resumed.runs[what] for what in first["runs"]} == first["runs"]

    run(deques, again=True)
    again = read(path)
    key = "dict_deque.ten_10.events_per_s"
    assert again.figures[key] != first["figures"][key]
    assert again.runs["planted"] == resumed.runs["planted"]


def test_other_parameters_and_machines_have_files_of_their_own(tmp_path: Path) -> None:
    mine = known("peers", {"runs": 1, "scale": 1.0}, tmp_path)
    mine.note("a", "1", {"x": 1.0})
    mine.note("a.b", "1", {"x": 2.0})
    mine.write(tmp_path)
    assert known("peers", {"runs": 1, "scale": 1.0}, tmp_path).figures == {"a.x": 1.0, "a.b.x": 2.0}
    assert known("peers", {"runs": 2, "scale": 1.0}, tmp_path).figures == {}
    assert replace(mine, machine=mine.machine | {"cores": 999}).name != mine.name
    mine.note_missing("a", "it is gone")
    assert (mine.figures, mine.not_run, set(mine.runs)) == ({"a.b.x": 2.0}, {"a": "it is gone"}, {"a.b"})
    assert mine.has("a.b", "1")
    assert not mine.has("a.b", "2"), "another version is measured anew"
    assert isinstance(mine, Results)


def test_exact_values_are_those_of_the_semantics() -> None:
    exact = Expected(events(100, 105, 110, 107, 110), [10])
    assert [exact.on_arrival(place)[0] for place in range(5)] == [1, 2, 2, 3, 4]
    assert [exact.in_the_end(place)[0] for place in range(5)] == [1, 2, 4, 3, 4]
    assert exact.on_arrival(3)[1:] == (0.30000000000000004, 0.30000000000000004 / 3), (
        "0.1 three times, exactly, rounded"
    )


def test_results_are_compared_by_count_and_within_a_tolerance() -> None:
    expected = {"a": (2.0, 0.3, 0.15), "b": (1.0, 5.0, 5.0), "c": (1.0, 5.0, 5.0), "d": (1.0, 5.0, 5.0)}
    got = {"a": (2.0, 0.30000000000000004, 0.15), "b": (1.0, 5.0, 5.0), "c": (2.0, 5.0, 5.0)}
    found = compared(expected, got)
    assert (found.events, found.answered, found.right, found.exact) == (4, 3, 2, 1)
    assert 0 < found.largest_error < 1e-15
    assert compared({"a": (1.0, 1.0, 1.0)}, {"a": (1.0, math.nan, 1.0)}).right == 0
    assert compared({"a": (1.0, 1.0, 1.0)}, {"a": (1.0, 1.0)}).right == 0


def test_an_event_with_two_results_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("a,1,2.0,2.0\nb,1,,\na,1,2.0,2.0\n")
    assert str(read_results(path, ["b"])) == "{'b': (1.0, nan, nan)}"
    with pytest.raises(ValueError, match="two results of event a"):
        read_results(path, ["a"])


def test_results_may_be_replies(tmp_path: Path) -> None:
    path = tmp_path / "results.ndjson"
    path.write_bytes(
        b"".join(msgspec.json.encode(reply(id_, [(0, (2, 0.3, 0.1 + 0.2))])) + b"\n" for id_ in "ab")
    )
    assert read_results(path, ["b"]) == {"b": (2.0, 0.3, 0.1 + 0.2)}
    path.write_text('{"id":"a","metrics":{"c0":0,"s0":null,"a0":null}}\n' * 2)
    with pytest.raises(ValueError, match="two results of event a"):
        read_results(path, ["a"])


def test_events_for_speed_have_no_ties_and_fill_the_window() -> None:
    work = WORKS["one_100"]
    made = Events.of(first_of(in_order(work), 140_000))
    assert all(earlier < later for earlier, later in pairwise(made.times_ms.tolist()))
    assert len(set(made.ids)) == 140_000
    held = np.searchsorted(made.times_ms, made.times_ms[0] + max(work.windows_ms) / 2)
    assert held == pytest.approx(work.held / 2, rel=0.01)
    assert len(np.unique(made.cards)) == work.keys == 2_000


def test_the_small_sets_have_what_they_are_for() -> None:
    ends = Events.of(on_boundaries())
    assert set(np.diff(ends.times_ms)) == {1_000}
    mixed = Events.of(in_disorder())
    behind = np.maximum.accumulate(mixed.times_ms) - mixed.times_ms
    assert 0 < behind.max() < DISORDER_MS
    assert (behind > 0).mean() > 0.02
    assert len(np.unique(mixed.times_ms)) < len(mixed) / 2


def test_the_lock_has_each_package_that_is_asked_for() -> None:
    wanted = Path(packages.__file__).with_name("requirements.in").read_text().split()
    assert {
        f"{package}=={packages.pinned(package)}"
        for package in ("apache-flink-libraries", "duckdb", "polars", "quixstreams")
    } == set(wanted)
    lock = Path(packages.__file__).with_name("requirements.lock").read_text()
    assert "://" not in lock
    assert lock.count("--hash=sha256:") > len(wanted)
