"""What kept runs say is written into the pages: of each bench one whole run, chosen as `bench.publish` says."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import bench.publish
from bench.children import TREE
from bench.kept_results import FOLDER, Results, read
from bench.pages import circumstances
from bench.paper.table import COLUMNS
from bench.peers.catalog import PEERS
from bench.publish import COMPARED_WITH, PAGE, PUBLISHED, README, README_PEERS, chosen, main, publish
from bench.stages import table as stages_table
from bench.workloads import table as workloads_table

MACHINE = {"processor": "A", "cores": 2, "memory_gib": 16, "system": "L", "python": "3", "java": ""}
SPREAD = ("", "_least", "_greatest")
STAGES = {f"read_json_ns{end}": 1_234.0 for end in SPREAD} | {"read_json_bound_ns": 12.34}
STAGES |= {f"own_thread_ns{end}": 5_000.0 for end in SPREAD} | {"measured_events": 10.0}
WORKLOAD = {f"{key}{end}": 98_765.0 for key in ("events_per_s", "cpu_us_per_event") for end in SPREAD}
WORKLOAD |= {"record_bytes_per_event": 50.0, "state_bytes": 3.0 * 2**20, "filled_events": 7e6}
WORKLOAD |= {"compared_events": 200.0}
PEER = {f"events_per_s{end}": 4_321.0 for end in SPREAD}
PEER |= {"cpu_us_per_event": 5.0, "written_bytes_per_event": 60.0, "rss_mib": 300.0}
COMPARED = {"p50_ms_at_500_base": 0.8, "p50_ms_at_500_new": 0.6}
COMPARED |= dict(zip((f"p50_ms_at_500_ratio{end}" for end in SPREAD), (0.75, 0.7, 0.9)))
COMPARED |= {"p50_ms_at_500_pairs": 3.0}
PARTS = {
    "peers": ("railgun_engine.one_10", PEER),
    "paper-fig9b": ("edges_20_cache_80", {"edges": 20.0, "p50_ms": 0.5}),
    "paper-fig9a": ("window_1h", {"p50_ms": 0.5}),
    "paper-fig8": ("engine", {"p50_ms": 0.5}),
    "paper-fig10": ("units_1", {"units": 1.0, "bulk_unit_us": 50.0}),
    "paper-rates": ("rate_500", {"rate_per_s": 500.0, "p50_ms": 0.5}),
    "paper-recovery": ("replay", {"seconds": 9.5, "held_events": 10.0}),
    "workloads": ("tiktok", WORKLOAD),
    "stages": ("batches", STAGES),
    "compare": ("http:os", COMPARED),
}


def kept(
    bench: str,
    folder: Path,
    scale: float = 1.0,
    runs: int = 3,
    at: str = "2026-01-02T",
    machine: Mapping[str, Any] = MACHINE,
    base: str = COMPARED_WITH,
) -> Path:
    """A run's file, with one part."""
    more = {"base": base} if bench == "compare" else {}
    results = Results(bench, {"runs": runs, "scale": scale, **more}, dict(machine))
    part, figures = PARTS.get(bench, ("part", {}))
    results.note(part, "", figures)
    results.runs[part]["at"] = at
    results.write(folder)
    return folder / results.name


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the pages of this one."""
    folder = tmp_path / "tree"
    (folder / "docs" / "images").mkdir(parents=True)
    for page in (README, PAGE):
        (folder / page).write_text((TREE / page).read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def test_each_bench_has_its_place(tmp_path: Path, tree: Path) -> None:
    paths = [kept(bench, tmp_path / "kept") for bench in PARTS]
    assert set(PARTS) == set(PUBLISHED), "each has an example here"
    assert main([*map(str, paths), "--tree", str(tree)]) == 0
    page = (tree / PAGE).read_text()
    assert "| `railgun_engine` | 4,320 |" in page
    assert "| `railgun_engine` | 4,320 |" in (tree / README).read_text()
    assert "| `flink_heap` |  |  |  |  |  |" in page, "what was aimed at"
    assert "| `edges_20_cache_80` | 20 | 0.5 |" in page
    assert "| `window_1h` | 0.5 |" in page
    assert "| `engine` | 0.5 |" in page
    assert "| `units_1` |  | 50 |" in page
    assert "| `rate_500` | 500 | 0.5 |" in page
    assert "| `replay` | 9.5 |" in page
    assert "| `tiktok` | 98,800 (98,800 .. 98,800) | 98,800 (98,800 .. 98,800) | 50 |" in page
    assert "| `read_json` | 1,230 (1,230 .. 1,230) | 12.3 | 100 × |" in page
    assert "| `p50_ms_at_500` | 0.8 | 0.6 | 0.75 (0.7 .. 0.9) | 3 | lower is better |" in page
    assert "Not measured yet." not in page
    shown = set(re.findall(r"\]\(images/([\w-]+\.svg)\)", page))
    assert shown == {"peers.svg", *(f"paper-{figure}.svg" for figure in COLUMNS)}
    assert shown == {path.name for path in (tree / "docs" / "images").iterdir()}


def test_what_has_no_file_stays_as_it_is(tmp_path: Path, tree: Path) -> None:
    before = (tree / PAGE).read_text()
    publish([kept("stages", tmp_path / "kept")], tree)
    begin, end = "<!-- stages: begin -->", "<!-- stages: end -->"
    after = (tree / PAGE).read_text()
    assert after.partition(begin)[0] == before.partition(begin)[0]
    assert after.partition(end)[2] == before.partition(end)[2]
    assert (tree / README).read_text() == (TREE / README).read_text(encoding="utf-8")


def test_one_whole_run_of_each_bench_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept("stages", tmp_path, runs=5, at="2026-01-01T")
    last = kept("stages", tmp_path, at="2026-01-03T")
    # Files of a fresh clone are as old as one another.
    kept("stages", tmp_path, runs=4, at="2026-01-02T")
    kept("stages", tmp_path, scale=0.1, at="2026-01-04T")
    other = kept("peers", tmp_path, scale=2.0)
    kept("workloads", tmp_path, scale=0.5)
    Results("paper-fig8", {"runs": 3, "scale": 1.0}, MACHINE).write(tmp_path)
    assert chosen(tmp_path) == [other, last]
    compared = kept("compare", tmp_path)
    kept("compare", tmp_path, at="2026-01-05T", base="ffffffff")
    assert chosen(tmp_path) == [other, last, compared]
    # Of the machine that it is asked on, if there is one.
    here = MACHINE | {"cores": 64}
    monkeypatch.setattr(bench.publish, "machine", lambda: here)
    own = kept("stages", tmp_path, at="2025-01-01T", machine=here)
    assert chosen(tmp_path) == [other, own, compared]


def test_readme_shows_peers_that_there_are() -> None:
    assert set(README_PEERS) <= set(PEERS)


@pytest.fixture
def tracked(tmp_path: Path) -> list[Path]:
    """Copies of the results that this tree has. A working tree may have more, which git ignores."""
    listed = subprocess.run(["git", "ls-files", str(FOLDER)], cwd=TREE, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git tree")
    folder = tmp_path / "tracked"
    folder.mkdir()
    return [Path(shutil.copy(TREE / name, folder)) for name in listed.stdout.split()]


def test_what_the_page_shows_is_kept_in_the_tree(tracked: list[Path]) -> None:
    page = (TREE / PAGE).read_text(encoding="utf-8")
    told = re.findall(r"<!-- ([\w ]+): begin -->\n(.*?)<!-- ", page, re.DOTALL)
    benches = {name.replace(" ", "-") for name, text in told if text != "Not measured yet.\n"}
    assert benches - {"peers-summary", "peers-aims"} <= {read(path).bench for path in tracked}


def test_pages_and_pictures_are_what_the_results_say(tracked: list[Path], tree: Path) -> None:
    publish(chosen(tracked[0].parent), tree)
    for path in (tree / README, tree / PAGE, *(tree / "docs" / "images").iterdir()):
        name = path.relative_to(tree)
        assert path.read_text(encoding="utf-8") == (TREE / name).read_text(encoding="utf-8"), (
            f"{name}: python -m bench.publish writes it"
        )


def test_a_table_of_stages_has_what_both_parts_have() -> None:
    results = Results("stages", {"runs": 3, "scale": 1.0}, MACHINE)
    results.note("batches", "", STAGES)
    results.note("single", "", {f"own_thread_ns{end}": 90_000.0 for end in SPREAD})
    lines = stages_table.text_of(results).splitlines()
    assert lines[0].startswith("| stage | 2,048 at a time: ns per event |")
    assert lines[2:4] == [
        "| `read_json` | 1,230 (1,230 .. 1,230) | 12.3 | 100 × |  |  |  |",
        "| `own_thread` | 5,000 (5,000 .. 5,000) |  |  | 90,000 (90,000 .. 90,000) |  |  |",
    ]
    assert lines[5] == circumstances(results)


def test_a_workload_without_figures_is_named() -> None:
    results = Results("workloads", {"runs": 3, "scale": 1.0}, MACHINE)
    results.note("tiktok", "", WORKLOAD)
    results.note_missing("fraud", "its windows were not full")
    assert "- `fraud`: its windows were not full" in workloads_table.text_of(results).splitlines()


def test_what_no_page_has_a_place_for_is_refused(tmp_path: Path, tree: Path) -> None:
    with pytest.raises(ValueError, match="no page has a place for paper-fig99"):
        publish([kept("paper-fig99", tmp_path)], tree)


def test_a_file_that_lacks_a_figure_is_refused(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARTS, "workloads", ("tiktok", {"events_per_s": 1.0}))
    with pytest.raises(ValueError, match=r"has no figure 'tiktok\.events_per_s_least': measure anew"):
        publish([kept("workloads", tmp_path)], tree)


@pytest.mark.parametrize("text", ["{}", "no JSON", "[]"])
def test_a_file_that_is_no_run_is_refused(
    text: str, tmp_path: Path, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none.json").write_text(text)
    good = kept("stages", tmp_path / "kept")
    assert main([str(good), str(tmp_path / "none.json"), "--tree", str(tree)]) == 2
    assert f"bench.publish: {tmp_path / 'none.json'} is no file of a run" in capsys.readouterr().err
    assert (tree / PAGE).read_text() == (TREE / PAGE).read_text(encoding="utf-8")
