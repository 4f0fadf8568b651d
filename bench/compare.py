"""This tree against another revision of it: the same workloads in turn, in one go, so that both meet the same machine.

    python -m bench.compare REVISION [--only NAME ...] [--runs N] [--scale F]

The revision is checked out inside this tree's .cache for as long as it takes; the workloads are this tree's in both.
Prints a line per workload with both medians and the ratios, and at the end one line of JSON.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.children import Child, ChildFailedError
from bench.process import end_in_order, load
from bench.unit_cases import THROUGHPUT, WORKLOADS

_TREE = Path(__file__).resolve().parent.parent
_LOWER_IS_BETTER = {"batch1": "p50_ms"}


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A folder with that revision under this tree's benches."""
    git = ["git", "-C", str(_TREE)]
    resolve = [*git, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    commit = subprocess.run(resolve, check=True, capture_output=True, text=True).stdout.strip()
    # The same folder each time: compiled kernels are kept by the path of their source.
    base = _TREE / ".cache" / "compare" / commit[:12]
    try:
        subprocess.run(
            [*git, "worktree", "add", "--quiet", "--detach", "--force", str(base), commit], check=True
        )
        shutil.rmtree(base / "bench", ignore_errors=True)
        shutil.copytree(_TREE / "bench", base / "bench", ignore=shutil.ignore_patterns("__pycache__"))
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)
        subprocess.run([*git, "worktree", "prune"], check=False)


def compared(
    name: str, base: Path, runs: int, scale: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What runs of one workload measured: of the base and of this tree. Raises ChildFailedError."""
    measured: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    with ExitStack() as stack:
        children = []
        for folder in (base, _TREE):
            child = stack.enter_context(Child("bench.unit_child", [name, str(scale)], folder))
            child.answer()
            children.append(child)
        for run in range(runs):
            # Who goes first changes from run to run.
            for side in (0, 1) if run % 2 == 0 else (1, 0):
                measured[side].append(children[side].ask())
    return measured


def _ratios(name: str, measured: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> dict[str, float]:
    column = _LOWER_IS_BETTER.get(name, "events_per_s")
    base, new = ([each[column] for each in side] for side in measured)
    ratios = [of_new / of_base for of_base, of_new in zip(base, new, strict=True)]
    cpu = statistics.median(
        of_new["events_per_cpu_s"] / of_base["events_per_cpu_s"]
        for of_base, of_new in zip(*measured, strict=True)
    )
    ratio = statistics.median(ratios)
    print(
        f"{name:28}{statistics.median(base):>14,.4g} -> {statistics.median(new):>12,.4g} {column}"
        f"   ratio {ratio:.3f} ({min(ratios):.3f} .. {max(ratios):.3f}), per CPU second {cpu:.3f}",
        flush=True,
    )
    return {name: round(ratio, 4), f"{name}_per_cpu": round(cpu, 4)}


def main() -> int:
    """Compare; 1 where a workload does not run on one of the sides."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("revision", help="what to compare with: a git revision")
    parser.add_argument("--only", nargs="*", choices=list(WORKLOADS), help="workloads")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side (default 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="measured events, as a multiple")
    arguments = parser.parse_args()
    names = arguments.only or [*(name for name in THROUGHPUT if name != "cold_10m"), "batch1"]
    figures: dict[str, float] = {}
    failed = False
    end_in_order()
    try:
        with checked_out(arguments.revision) as base:
            print(f"{arguments.revision} -> this tree; {load()}")
            for name in names:
                try:
                    figures |= _ratios(name, compared(name, base, arguments.runs, arguments.scale))
                except ChildFailedError as error:
                    failed = True
                    print(f"{name}: not compared: {error}", file=sys.stderr)
    except subprocess.CalledProcessError:
        print(f"bench.compare: {arguments.revision}: no revision of this tree", file=sys.stderr)
        return 2
    print(json.dumps({"bench": "compare", "figures": figures}))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
