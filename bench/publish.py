"""Writes what kept runs say into docs/benchmarks.md, README.md and docs/images/: no figure is written by hand.

    python -m bench.publish [RESULTS.json ...] [--tree TREE]

Without files it takes of each bench one of bench/results/ at a scale of 1 or more: of this machine, if there is one; of
several the one with most parts; of such the one that was measured last. What has no such file stays in the pages as it
is. Of kept comparisons one revision's is written (COMPARED_WITH).
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench import comparison
from bench.children import TREE
from bench.kept_results import FOLDER, Results, machine, read
from bench.pages import written
from bench.paper import table as paper_table
from bench.paper.drawing import svg_of
from bench.peers.aims import aims
from bench.peers.picture import picture
from bench.peers.summary import summary
from bench.peers.table import tables
from bench.stages import table as stages_table
from bench.workloads import table as workloads_table

PAGE, README = "docs/benchmarks.md", "README.md"
COMPARED_WITH = "7d2c2c94"
"""The revision whose comparison the page shows."""
# README has no room for all.
README_WORKS = ("one_10", "ten_10")
README_PEERS = (
    "railgun_engine",
    "dict_deque",
    "duckdb_batch",
    "flink_heap",
    "flink_rocksdb",
    "flink_datastream_heap",
    "railgun_topics",
    "consumer_deque",
    "kafka_streams",
    "quix_sliding",
)


@dataclass(frozen=True, slots=True)
class Pieces:
    """What is written of one bench. blocks: text by page and mark.  pictures: SVG by the name of its file."""

    blocks: Mapping[tuple[str, str], str]
    pictures: Mapping[str, str] = field(default_factory=dict)


def _peers(results: Results) -> Pieces:
    blocks = {
        (PAGE, "peers summary"): summary(results),
        (PAGE, "peers aims"): aims(results),
        (PAGE, "peers"): tables(results),
        (README, "peers summary"): summary(results, README_WORKS, README_PEERS),
    }
    return Pieces(blocks, {"peers.svg": picture(results)})


def _figure(figure: str, results: Results) -> Pieces:
    name = f"paper-{figure}.svg"
    # The picture is not there before it is written, so its link is part of the block.
    link = f"![What the first table has, drawn](images/{name})"
    text = f"{link}\n\n{paper_table.text_of(results)}"
    return Pieces({(PAGE, f"paper {figure}"): text}, {name: svg_of(results)})


def _workloads(results: Results) -> Pieces:
    return Pieces({(PAGE, "workloads"): workloads_table.text_of(results)})


def _compare(results: Results) -> Pieces:
    return Pieces({(PAGE, "compare"): comparison.text_of(results)})


def _stages(results: Results) -> Pieces:
    return Pieces({(PAGE, "stages"): stages_table.text_of(results)})


PUBLISHED: dict[str, Callable[[Results], Pieces]] = {
    "peers": _peers,
    **{f"paper-{figure}": partial(_figure, figure) for figure in paper_table.COLUMNS},
    "workloads": _workloads,
    "stages": _stages,
    "compare": _compare,
}
"""What is written of each bench."""


def chosen(folder: Path) -> list[Path]:
    """Return the file of each bench that is published, as the module says. Raises ValueError if a file is none."""
    here = machine()
    found: dict[str, tuple[bool, int, str, Path]] = {}
    for path in sorted(folder.glob("*.json")):
        results = read(path)
        is_whole = results.parameters.get("scale", 0) >= 1 and results.runs
        if is_whole and results.parameters.get("base", COMPARED_WITH).startswith(COMPARED_WITH):
            # The file's own time says nothing in a fresh clone.
            file = results.machine == here, len(results.runs), results.measured_at[-1], path
            found[results.bench] = max(file, found.get(results.bench, file))
    return [found[name][-1] for name in PUBLISHED if name in found]


def publish(paths: Sequence[Path], tree: Path) -> None:
    """Write what files say into the pages of a tree: all of it, or nothing. Raises ValueError, OSError."""
    pages: dict[str, str] = {}
    pictures: dict[str, str] = {}
    for path in paths:
        results = read(path)
        if results.bench not in PUBLISHED:
            raise ValueError(f"{path}: no page has a place for {results.bench}")
        try:
            pieces = PUBLISHED[results.bench](results)
        except KeyError as error:
            raise ValueError(f"{path} has no figure {error}: measure anew") from None
        for (page, mark), text in pieces.blocks.items():
            before = pages.get(page) or (tree / page).read_text(encoding="utf-8")
            pages[page] = written(before, mark, text)
        pictures |= {f"docs/images/{name}": svg for name, svg in pieces.pictures.items()}
        print(f"{results.bench}: {path}")
    for name, text in (pages | pictures).items():
        (tree / name).write_text(text, encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Write the pages. Returns 2 if one has no marks, or a file is none."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.publish",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="*", type=Path, help="files of runs")
    parser.add_argument("--tree", type=Path, default=TREE, help="where docs/ and README.md are")
    arguments = parser.parse_args(words)
    try:
        paths = arguments.results or chosen(FOLDER)
        publish(paths, arguments.tree)
    except (ValueError, OSError) as error:
        print(f"bench.publish: {error}", file=sys.stderr)
        return 2
    if not paths:
        print(f"bench.publish: no whole run is kept in {FOLDER}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
