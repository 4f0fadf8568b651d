"""The tables of peers and their picture are made of a run's file."""

import platform
import xml.etree.ElementTree as ET

import pytest

from bench.kept_results import Results
from bench.pages import circumstances, written
from bench.peers.aims import aims
from bench.peers.catalog import OURS
from bench.peers.picture import picture
from bench.peers.summary import summary
from bench.peers.table import tables

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
        "memory_gib": 16,
        "system": "Linux x86_64",
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
    paced = {
        f"{key}{end}": 7.0 for key in ("p50_ms", "p99_ms", "p999_ms") for end in ("", "_least", "_greatest")
    }
    over = {f"railgun_topics_over_p999_ms{end}": 0.5 for end in ("", "_least", "_greatest")}
    found.note("consumer_deque.one_10.at_500", "", paced | over)
    found.note("kafka_streams.one_10", "4.3.1", {"filling_events_per_s": 9.0}, "it was stopped")
    found.note_missing("flink_heap", "java is not installed")
    return found


def test_each_system_has_its_lines() -> None:
    lines = tables(results()).splitlines()
    system = f"Linux x86_64 {platform.release()}"
    assert lines[0].startswith(f"A, 2 cores, 16 GiB; {system}, Python 3, Java none; scale 1, 3 runs, ")
    assert (
        "| one_10 | `railgun_unit` | 123,000 (100,000 .. 235,000) | 8.13 | 60 | 512 |  |  | 99.9 % |" in lines
    )
    duckdb = "| one_10 | `duckdb_batch` 2.0.0 | 123,000 (100,000 .. 235,000) | 8.13 | 60 | 512 "
    assert f"{duckdb}| 12.3 (11 .. 13); 20.6 | 12.3 (11 .. 13); 20.6 | 99.9 % |" in lines
    assert "| `duckdb_batch` 2.0.0 | w − 1 ms | 100 % | 50.0 % | 99.9 % |" in lines
    consumer = "| one_10 | `consumer_deque` | 123,000 (100,000 .. 235,000) | 8.13 | 60 | 512 | 3 | 812 "
    assert f"{consumer}| 12.3 (11 .. 13); 20.6 | 99.9 % |" in lines
    assert not [line for line in lines if line.startswith("| one_10 | `kafka_streams`")], "it was stopped"
    same = "7 (7 .. 7)"
    assert f"| one_10 | `consumer_deque` | {same} | {same} | {same} | 0.5 (0.5 .. 0.5) |" in lines
    assert lines[-2:] == ["- `kafka_streams.one_10`: it was stopped", "- `flink_heap`: java is not installed"]


def test_the_circumstances_name_kernels_days_commits_and_the_load() -> None:
    found = results()
    for place, run in enumerate(found.runs.values()):
        run |= {"at": f"2026-01-0{place + 1}T", "load_1min": place + 0.5, "commit": f"{place % 4}23456789a"}
        run |= {"kernel": f"6.{place % 2}"}
    assert len(found.runs) == 6
    assert "Linux x86_64 6.0, 6.1, Python 3" in circumstances(found)
    assert circumstances(found).partition("3 runs, ")[2] == (
        "2026-01-01 to 2026-01-06; this engine's commit 02345678, 12345678, 22345678 and 1 more; "
        "load of one minute at each part's end 0.5 to 5.5, the bench's own threads included."
    )


def test_the_page_is_written_between_its_marks() -> None:
    begin, end = "<!-- peers: begin -->", "<!-- peers: end -->"
    page = f"before\n{begin}\nold\n{end}\nafter\n"
    assert written(page, "peers", "new\n") == f"before\n{begin}\nnew\n{end}\nafter\n"
    with pytest.raises(ValueError, match="no <!-- peers: begin -->"):
        written("before\nafter\n", "peers", "new\n")


def test_the_summary_has_a_row_for_each_system_that_was_measured() -> None:
    found = results()
    found.note("railgun_engine.one_10", "", SPEED)
    found.note("railgun_topics.one_10", "", {"events_per_s": 4_500.0})
    lines = summary(found, ("one_10",)).splitlines()
    assert lines[0] == (
        "| system | `one_10` | p99.9 at 500/s | equal to the bit | right on arrival | right in the end | "
        "answers each event | recovers |"
    )
    assert lines[2:9] == [
        "| *a file of JSON in, a file out* |  |  |  |  |  |  |  |",
        "| `railgun_engine` | 123,000 |  | 99.9 % |  |  | yes | yes |",
        "| `duckdb_batch` 2.0.0 | 123,000 (12.3 ×) |  | 99.9 % | 50.0 % | 99.9 % | no | no |",
        "| *topic in, topic out* |  |  |  |  |  |  |  |",
        "| `railgun_topics` | 4,500 | not measured |  |  |  | yes | yes |",
        "| `consumer_deque` | 123,000 (12.3 ×) | 7 ms | 99.9 % |  |  | yes | no |",
        "| `kafka_streams` | 9 (500 ×), stopped | not measured |  |  |  | yes | yes |",
    ]
    assert lines[10].startswith("A, 2 cores, 16 GiB; ")
    few = summary(found, ("one_10",), ("railgun_engine", "kafka_streams")).splitlines()
    assert [line.split(" | ")[0] for line in few[2:6]] == [
        "| *a file of JSON in, a file out*",
        "| `railgun_engine`",
        "| *topic in, topic out*",
        "| `kafka_streams`",
    ]


def test_what_was_aimed_at_is_reached_or_missed() -> None:
    found = results()
    found.note("railgun_topics.one_10", "", {"events_per_s": 4_500.0})
    found.note("kafka_streams.one_100", "4.3.1", {"railgun_topics_over": 3.0})
    found.note("railgun_topics.ten_100", "", {"events_per_s": 90.0})
    found.note("kafka_streams.ten_100", "4.3.1", {"filling_events_per_s": 9.0}, "it was stopped")
    key, spread = "railgun_topics_over_p999_ms", {"": 0.5, "_least": 0.2, "_greatest": 0.9}
    found.note("kafka_streams.one_10.at_500", "4.3.1", {key + end: each for end, each in spread.items()})
    lines = aims(found).splitlines()
    assert lines[0] == "| beside | `one_10` | `one_100` | `ten_10` | `ten_100` | p99.9 at 500/s |"
    assert "| `consumer_deque` | 12.3 of 1.5, reached |  |  |  |  |" in lines
    streams = "500 of 25, reached | 3 of 200, missed |  | 10 of 200, stopped: not known | 0.5 of 1, missed"
    assert f"| `kafka_streams` | {streams} |" in lines
    found.figures["kafka_streams.one_10.at_500.railgun_topics_over_p999_ms_greatest"] = 1.5
    assert "0.5 of 1, within the spread" in aims(found)
    found.figures["kafka_streams.one_100.railgun_topics_over_greatest"] = 201.0
    assert "3 of 200, within the spread" in aims(found)
    found.figures["consumer_deque.one_10.railgun_topics_over_least"] = 1.4
    assert "| `consumer_deque` | 12.3 of 1.5, within the spread |" in aims(found)


def test_what_is_known_of_none_is_left_out() -> None:
    found = results()
    found.figures = {key: value for key, value in found.figures.items() if ".at_500." not in key}
    assert "p99.9" not in summary(found)
    assert "p99.9" not in tables(found)


def test_the_picture_has_a_bar_for_each_of_them() -> None:
    drawn = picture(results())
    assert len(ET.fromstring(drawn).findall(".//{*}rect")) == 1 + 3
    assert all(name in drawn for name in ("duckdb_batch", "consumer_deque", "9, stopped"))
