"""The tables of peers in docs/benchmarks.md are written from a run's file."""

from pathlib import Path

import pytest

from bench.kept_results import TREE, Results
from bench.pages import written
from bench.peers.catalog import OURS
from bench.peers.table import MARK, tables

SPEED = {
    "events_per_s": 123_456.7,
    "events_per_s_least": 99_999.0,
    "events_per_s_greatest": 234_567.0,
    "cpu_us_per_event": 8.127,
    "written_bytes_per_event": 60.04,
    "rss_mib": 512.3,
    "exact_share": 0.9999,
}
RATIO = {"_over": 12.34, "_over_least": 11.0, "_over_greatest": 13.0, "_over_by_cpu": 20.55}
RATIOS = {f"{ours}{key}": value for ours in OURS for key, value in RATIO.items()}
FEW = {
    "boundary_shift_ms": 1,
    "disorder_answered_share": 1.0,
    "disorder_right_on_arrival_share": 0.5,
    "disorder_right_in_the_end_share": 0.99999,
}


def results() -> Results:
    """A run with two systems, one of which is this engine, and one that did not run."""
    machine = {
        "processor": "A",
        "cores": 2,
        "memory_bytes": 2**34,
        "system": "Linux 6",
        "python": "3",
        "java": "",
    }
    found = Results("peers", {"runs": 3, "scale": 1.0}, machine)
    found.note("railgun_unit.one_10", "", SPEED)
    found.note("duckdb_batch.one_10", "2.0.0", SPEED | RATIOS)
    found.note("duckdb_batch", "2.0.0", FEW)
    on_broker = {"broker_cpu_us_per_event": 3.0, "broker_written_bytes_per_event": 812.0}
    topics = {f"railgun_topics{key}": value for key, value in RATIO.items()}
    found.note("consumer_deque.one_10", "", SPEED | on_broker | topics)
    found.note("kafka_streams.one_10", "4.3.1", {"filling_events_per_s": 9.0}, "it was stopped")
    found.note_missing("flink_heap", "java is not installed")
    return found


def test_each_system_has_its_lines() -> None:
    lines = tables(results()).splitlines()
    assert lines[0].startswith("A, 2 cores, 16 GiB; Linux 6, Python 3, Java none; scale 1, 3 runs, ")
    assert (
        "| one_10 | `railgun_unit` | 123,000 (100,000 .. 235,000) | 8.13 | 60 | 512 |  |  | 99.9 % |" in lines
    )
    duckdb = "| one_10 | `duckdb_batch` 2.0.0 | 123,000 (100,000 .. 235,000) | 8.13 | 60 | 512 "
    assert f"{duckdb}| 12.3 (11 .. 13); 20.6 | 12.3 (11 .. 13); 20.6 | 99.9 % |" in lines
    assert "| `duckdb_batch` 2.0.0 | w − 1 ms | 100 % | 50.0 % | 99.9 % |" in lines
    consumer = "| one_10 | `consumer_deque` | 123,000 (100,000 .. 235,000) | 8.13 | 60 | 512 | 3 | 812 "
    assert f"{consumer}| 12.3 (11 .. 13); 20.6 | 99.9 % |" in lines
    assert not [line for line in lines if line.startswith("| one_10 | `kafka_streams`")], "it was stopped"
    assert lines[-2:] == ["- `kafka_streams.one_10`: it was stopped", "- `flink_heap`: java is not installed"]


def test_the_page_is_written_between_its_marks() -> None:
    begin, end = "<!-- peers: begin -->", "<!-- peers: end -->"
    page = f"before\n{begin}\nold\n{end}\nafter\n"
    assert written(page, "peers", "new\n") == f"before\n{begin}\nnew\n{end}\nafter\n"
    with pytest.raises(ValueError, match="no <!-- peers: begin -->"):
        written("before\nafter\n", "peers", "new\n")


def test_the_benchmarks_page_has_the_marks() -> None:
    page = Path(TREE / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert f"<!-- {MARK}: begin -->\nnew\n<!--" in written(page, MARK, "new\n")
