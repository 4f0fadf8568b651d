"""The bench of the paper's figures: its cases, and what is drawn and written from a file of results."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from bench.kept_results import Results
from bench.paper.claims import CLAIMS, PAPER_RATES
from bench.paper.drawing import svg_of
from bench.paper.hops import HOPS_S, Sums
from bench.paper.many_nodes import NODES, Costs, computed
from bench.paper.pace import QUANTILES
from bench.paper.svg import Chart, Line, drawn
from bench.paper.table import COLUMNS, text_of
from bench.paper.windows_work import EDGES, LENGTHS, delays_ms, edges_cases, length_cases
from railgun.catalog.definitions import parse_definitions

MACHINE = {"processor": "A", "cores": 2, "memory_gib": 16, "system": "L", "python": "3", "java": ""}
SVG = "{http://www.w3.org/2000/svg}"
FIGURES = {
    "p50_ms": 0.1,
    "p99_ms": 1.0,
    "p999_ms": 2.0,
    "p9999_ms": 3.0,
    "events_per_s": 1_234.0,
    "events_per_cpu_s": 2_345.0,
}


def results(figure: str) -> Results:
    """Results of a figure, without parts."""
    return Results(f"paper-{figure}", {"runs": 3, "scale": 1.0}, MACHINE)


def circles(text: str) -> int:
    """The number of points that an SVG shows."""
    return len(list(ET.fromstring(text).iter(f"{SVG}circle")))


def test_each_edge_is_a_different_one() -> None:
    for edges in EDGES:
        length_ms, delays = delays_ms(edges, 983_040)
        assert len({*delays, *(delay + length_ms for delay in delays)}) == edges


def test_the_cases_of_figure_9_can_be_defined() -> None:
    for case in (*edges_cases(0.01), *length_cases(0.01)):
        assert parse_definitions(case.workload.definitions).metrics


def test_figure_9b_has_a_line_for_each_cache() -> None:
    found = results("fig9b")
    for edges, part in ((20, "edges_20_cache_80"), (240, "edges_240_cache_80"), (20, "edges_20_cache_4")):
        more = {"edges": float(edges), "missed_chunks_per_1000": 0.5, "single_events": 12_345.0}
        found.note(part, "", FIGURES | more)
    found.note_missing("edges_1000_cache_80", "no time is left")
    assert circles(svg_of(found)) == 3 * 3
    text = text_of(found)
    assert "| measured here | edges | p50 ms | p99 ms | p99.9 ms | single events of a run |" in text
    assert "| `edges_240_cache_80` | 240 | 0.1 | 1 | 2 | 12,300 | 1,230 | 2,340 | 0.5 |" in text
    assert CLAIMS["fig9b"][0].says in text
    assert "- `edges_1000_cache_80`: no time is left" in text


def test_a_quantile_that_hardly_any_latency_lies_above_is_left_out() -> None:
    found = results("fig9b")
    more = {"edges": 20.0, "missed_chunks_per_1000": 0.5}
    found.note("edges_20_cache_80", "", FIGURES | more | {"single_events": 10_000.0})
    found.note("edges_20_cache_4", "", FIGURES | more | {"single_events": 9_999.0, "measured_events": 1e6})
    assert "| `edges_20_cache_80` | 20 | 0.1 | 1 | 2 | 10,000 |" in text_of(found)
    assert "| `edges_20_cache_4` | 20 | 0.1 | 1 |  | 10,000 |" in text_of(found)
    assert circles(svg_of(found)) == 3 * 2 - 1


def test_each_column_has_a_name_that_is_no_key() -> None:
    for figure in COLUMNS:
        assert "_" not in text_of(results(figure)).splitlines()[0]


def test_figure_9a_has_a_point_for_each_window() -> None:
    found = results("fig9a")
    for name in LENGTHS:
        found.note(name, "", FIGURES | {"filled_events": 10.0})
    assert circles(svg_of(found)) == len(LENGTHS) * 4
    assert "| `window_7d` | 0.1 | 1 | 2 | 3 | 1,230 | 2,340 | 10 |" in text_of(found)


def test_a_chart_escapes_its_texts_and_can_be_empty() -> None:
    text = drawn(
        [Chart("a < b", "x", "y", [Line("&", [(1.0, 2.0), (10.0, 3.0)])]), Chart("none", "x", "y", [])], ""
    )
    assert circles(text) == 2
    assert "a &lt; b" in text
    assert "not measured" in text


def test_figure_8_shows_latencies_and_the_errors_of_hops() -> None:
    found = results("fig8")
    found.note("engine", "", {key: 1.0 + place for place, key in enumerate(QUANTILES)})
    for hop_s in HOPS_S:
        found.note(f"hop_{hop_s}s_computed", "", {"hop_s": float(hop_s), "mean_error": 0.1, "p99_error": 0.2})
    assert circles(svg_of(found)) == len(QUANTILES) + 2 * len(HOPS_S)
    assert "| `engine` | 1 | 3 | 4 | 5 |  |" in text_of(found)


def test_figure_8_shows_flink_beside_this_engine() -> None:
    found = results("fig8")
    latencies = {key: 1.0 + place for place, key in enumerate(QUANTILES)}
    found.note("engine", "", latencies)
    found.note("hop_60s_computed", "", {"hop_s": 60.0, "mean_error": 0.1, "p99_error": 0.2})
    hop = latencies | {"hop_s": 60.0, "mean_error": 0.3, "p99_error": 0.4, "backlog_events_per_s": 0.01}
    found.note("flink_hop_60s_heap", "2", hop | {"unanswered_share": 0.0})
    found.note("flink_hop_1s_rocksdb", "2", hop | {"hop_s": 1.0, "unanswered_share": 0.5}, "it falls behind")
    text = svg_of(found)
    assert circles(text) == 3 * len(QUANTILES) + 2 + 2 * 2
    assert "Flink, hop 60s, heap<" in text
    assert "Flink, hop 1s, rocksdb, falls behind<" in text
    assert "| `flink_hop_60s_heap` | 1 | 3 | 4 | 5 | 0.01 |  | 0.3 | 0.4 |  |" in text_of(found)
    assert "- `flink_hop_1s_rocksdb`: it falls behind" in text_of(found)


def test_a_hop_lacks_the_oldest_events() -> None:
    # A window of 10 ms and hops of 5 ms: at 22 ms the oldest open window began at 15 ms, the exact one at 13 ms.
    cards = np.array([1, 2, 1, 1, 1], np.int64)
    sums = Sums(cards, np.array([0, 11, 13, 16, 22], np.int64), np.array([1.0, 1.0, 2.0, 3.0, 5.0]))
    assert sums.errors(10, 5).tolist() == pytest.approx([0.0, 0.0, 0.2, 0.0])
    assert sums.places(10).tolist() == [2, 3, 4, 1]
    assert sums.exact(10).tolist() == [2.0, 5.0, 10.0, 1.0]
    assert sums.hopping(10, 5).tolist() == [2.0, 5.0, 8.0, 1.0]


def test_figure_10_is_computed_from_the_costs_of_one_unit() -> None:
    one = computed(Costs(frontend_us=100.0, unit_us=50.0, broker_us=20.0), 1)
    assert one["computed_events_per_s_of_units"] == 8 * 20_000
    assert one["computed_events_per_s"] == one["computed_events_per_s_of_frontends"] == 8 * 10_000
    assert one["computed_broker_cores"] == 1.6
    fifty = computed(Costs(100.0, 50.0, 20.0), 50)
    assert fifty["computed_events_per_s"] == 50 * one["computed_events_per_s"]


def test_figure_10_says_what_is_computed() -> None:
    found = results("fig10")
    found.note("units_1", "", {"units": 1.0, "bulk_unit_us": 50.0, "steady_unit_us": 90.0})
    for nodes in NODES:
        found.note(f"nodes_{nodes}_computed", "", computed(Costs(100.0, 50.0, 20.0), nodes))
    text = svg_of(found)
    assert circles(text) == 2 + len(NODES) + len(PAPER_RATES)
    assert "Computed, not measured" in text
    assert "the paper's own" in text
    assert "| `nodes_50_computed` |" in text_of(found)
