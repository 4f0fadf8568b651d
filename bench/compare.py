"""This tree against another revision of it: both sides measure in turn, in pairs, so that both meet the same machine.

    python -m bench.compare REVISION [--only WHAT ...] [--runs N] [--each N] [--scale F] [--keep]

WHAT is a workload of the unit bench (payments_1x3, batch1, cold_10m, ...), or BENCH:CASE, which is everything that
`python -m bench.BENCH --only CASE` measures:

    unit:recovery     recovery_s, recovery_full_load_s
    http:os           max_rate, p999_ms_at_500, p50_ms_at_500, bulk, ...
    e2e:unit_topic    unit_topic (e2e starts a local Kafka broker)
    e2e:in_out        in_out_max_rate, in_out_p999_ms_at_500, ...
    e2e:bulk          in_out_bulk, in_out_bulk_wide

The revision is checked out in this tree's .cache while the comparison runs. Both sides use this tree's Python and
packages. http:…, e2e:in_out, e2e:bulk and e2e:killed are under one injector: this tree's bench/ drives the server of
either side. Of all others each side runs its own bench/ on its own modules. A figure that one side lacks is named, and
so is a bench that fails on one side; the others go on.

Prints a line per figure: both medians, then the median and the spread of the pairs' ratios (this tree's value divided
by the revision's). The last line is JSON. The exit code is 1 where something could not be compared.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.children import TREE, Child, ChildFailedError
from bench.pairs import Figures, Pairs
from bench.process import compile_bytecode, end_in_order, load
from bench.revision import UnknownRevisionError, changed_benches, checked_out, commit_of
from bench.service import SERVED_TREE
from bench.unit_cases import THROUGHPUT, WORKLOADS

_NEW = "this tree"
_DEFAULT = [*(name for name in THROUGHPUT if name != "cold_10m"), "batch1"]
# Their servers are started by `bench.service`, and they speak with these over HTTP and by topics alone.
_UNDER_ONE_INJECTOR = ("http:", "e2e:in_out", "e2e:bulk", "e2e:killed")
# The names of figures, by the columns in the answers of a workload's process.
_COLUMNS = {"events_per_s": "{}", "events_per_cpu_s": "{}_per_cpu"}
_BATCH1_COLUMNS = {each: "{}_" + each for each in ("p50_ms", "p999_ms", "p999_cpu_ms")}


@dataclass(frozen=True, slots=True)
class Sides:
    """Two trees that are measured in turn.

    folders: by the name of each side, the revision first.  runs: how many pairs.  each: runs of a case on each side.
    """

    folders: dict[str, Path]
    runs: int
    each: int
    scale: float

    def compile_all(self) -> None:
        """Have each side compile its kernels, which measuring would do otherwise; print the reason if it fails."""
        for side, folder in self.folders.items():
            print(f"kernels of {side}", file=sys.stderr, flush=True)
            compile_bytecode(folder)
            try:
                with Child("railgun.kernels", [], folder, side) as child:
                    child.lines()
            except ChildFailedError as error:
                print(error, file=sys.stderr, flush=True)

    def pairs(self, what: str) -> Iterator[list[Figures]]:
        """Yield the figures of each run, the revision's first. Raises ChildFailedError."""
        bench, _, case = what.partition(":")
        return self._bench_pairs(bench, case) if case else self._workload_pairs(what)

    def _orders(self) -> Iterator[list[str]]:
        """Yield the order of the sides for each run. The side that goes first changes from run to run."""
        for run in range(self.runs):
            yield list(self.folders) if run % 2 == 0 else list(reversed(self.folders))

    def _workload_pairs(self, name: str) -> Iterator[list[Figures]]:
        """Measure a workload. Each side has one process, which fills its windows once and measures in every run."""
        with ExitStack() as stack:
            children: dict[str, Child] = {}
            for side, folder in self.folders.items():
                child = Child("bench.unit_child", [name, str(self.scale)], folder, side)
                children[side] = stack.enter_context(child)
                child.answer()
            for order in self._orders():
                measured = {side: _workload_figures(name, children[side].ask()) for side in order}
                yield [measured[side] for side in self.folders]

    def _bench_pairs(self, bench: str, case: str) -> Iterator[list[Figures]]:
        """Measure a bench's case: the bench is started anew for each side in every run."""
        is_driven = f"{bench}:{case}".startswith(_UNDER_ONE_INJECTOR)
        arguments = ["--only", case, "--runs", str(self.each), "--scale", str(self.scale)]
        for run, order in enumerate(self._orders(), 1):
            measured: dict[str, Figures] = {}
            for side in order:
                print(f"{bench}:{case}: run {run} of {self.runs}, {side}", file=sys.stderr, flush=True)
                served = self.folders[side]
                environment = {SERVED_TREE: str(served)} if is_driven else {}
                folder = TREE if is_driven else served
                with Child(f"bench.{bench}", arguments, folder, side, environment) as child:
                    measured[side] = child.last_answer().get("figures", {})
            yield [measured[side] for side in self.folders]


def _workload_figures(name: str, answer: dict[str, Any]) -> Figures:
    columns = _BATCH1_COLUMNS if name == "batch1" else _COLUMNS
    return {key.format(name): answer[column] for column, key in columns.items() if column in answer}


def compared(sides: Sides, what: str) -> Pairs:
    """Return the pairs of one workload or case. If a run fails on one side, those of the runs before it."""
    found = Pairs(tuple(sides.folders))
    try:
        for base, new in sides.pairs(what):
            found.add(base, new)
    except ChildFailedError as error:
        found.missing[what] = str(error)
    return found


def _checked(what: str) -> str:
    if ":" not in what and what not in WORKLOADS:
        raise argparse.ArgumentTypeError(f"{what!r} is neither BENCH:CASE nor one of {', '.join(WORKLOADS)}")
    return what


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("revision", help="what to compare with: a git revision")
    parser.add_argument(
        "--only",
        nargs="*",
        type=_checked,
        metavar="WHAT",
        help=f"workloads and cases (default: {' '.join(_DEFAULT)})",
    )
    parser.add_argument("--runs", type=int, default=5, help="pairs of runs (default 5)")
    parser.add_argument(
        "--each",
        type=int,
        default=1,
        help="--runs of a case in each of a pair: its median counts (default 1)",
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="measured events, seconds and long windows, as a multiple"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep the figures in bench/results/; `python -m bench.publish` shows those beside one revision",
    )
    return parser.parse_args()


def _keep(commit: str, sides: Sides, what: str, found: Pairs) -> None:
    # Imported here: what is not kept needs no module of the engine.
    from bench.comparison import keep

    keep({"base": commit, "runs": sides.runs, "each": sides.each, "scale": sides.scale}, what, found)


def main() -> int:
    """Compare. Returns 1 if something could not be compared, 2 if the revision is not known."""
    arguments = _arguments()
    end_in_order()
    try:
        commit = commit_of(TREE, arguments.revision)
    except UnknownRevisionError as error:
        print(f"bench.compare: {error}", file=sys.stderr)
        return 2
    with checked_out(TREE, commit) as base:
        folders = {arguments.revision: base, _NEW: TREE}
        sides = Sides(folders, arguments.runs, arguments.each, arguments.scale)
        print(f"{arguments.revision} ({commit[:12]}) -> {_NEW}; {load()}")
        chosen = arguments.only or _DEFAULT
        driven = [what for what in chosen if what.startswith(_UNDER_ONE_INJECTOR)]
        if driven:
            print(f"this tree's injector drives both sides: {' '.join(driven)}")
        if len(driven) < len(chosen) and (changed := changed_benches(TREE, commit)):
            others = "of the others " if driven else ""
            print(f"{others}each side runs its own of these files, which differ: {' '.join(changed)}")
        sides.compile_all()
        everything = Pairs(tuple(sides.folders))
        for what in chosen:
            found = compared(sides, what)
            found.print_lines()
            if arguments.keep:
                _keep(commit, sides, what, found)
            everything.update(found)
    print(json.dumps({"bench": "compare", "base": commit, **everything.summary()}))
    return int(bool(everything.missing))


if __name__ == "__main__":
    sys.exit(main())
