"""Says whether another run of the bench of peers found the same: the order of systems, and their ratios to this engine.

    python -m bench.peers.repeated BEFORE AFTER

BEFORE and AFTER are files of runs (bench/results/peers-….json), as of a clone and of a run in it. For each kind of work
that both have, a ratio may differ by a factor of 1.5, and no system that was faster than another one in all of its runs
may be slower in all of them. What differs is printed, and the exit code is 1; 2 if a file cannot be compared.
"""

import argparse
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

from bench.found import Found, shown
from bench.kept_results import Results, read
from bench.peers.catalog import PEERS, beside
from bench.peers.work import WORKS

FACTOR = 1.5


def differences(before: Results, after: Results) -> Iterator[str]:
    """Yield a sentence for each ratio and each order that is another one."""
    for work in WORKS:
        names = _in_both(before, after, work)
        for name in names:
            yield from _ratios(Found(before, f"{name}.{work}"), Found(after, f"{name}.{work}"), name)
        for faster, slower in permutations(names, 2):
            if _is_faster(before, work, faster, slower) and _is_faster(after, work, slower, faster):
                yield f"{work}: {faster} was faster than {slower}, and is slower"


def compared(before: Results, after: Results) -> int:
    """Return how many measurements of systems both have."""
    return sum(len(_in_both(before, after, work)) for work in WORKS)


def _in_both(before: Results, after: Results, work: str) -> list[str]:
    """Return the names of the systems that both have measured under a work."""
    return [name for name in PEERS if all(Found(each, f"{name}.{work}").is_whole for each in (before, after))]


def _ratios(before: Found, after: Found, name: str) -> Iterator[str]:
    for ours in beside(PEERS[name]):
        key = f"{ours.name}_over"
        then, now = before.get(key), after.get(key)
        if then is not None and now is not None and max(then / now, now / then) > FACTOR:
            yield f"{before.name}: {ours.name} was {shown(then)} times as fast, and is {shown(now)} times as fast"


def _is_faster(results: Results, work: str, faster: str, slower: str) -> bool:
    """Whether the slowest run of one system was faster than the fastest of another one."""
    least = Found(results, f"{faster}.{work}")["events_per_s_least"]
    return least > Found(results, f"{slower}.{work}")["events_per_s_greatest"]


def main() -> int:
    """Compare two files. Returns 1 if something differs, 2 if they cannot be compared."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers.repeated",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", type=Path, help="the file of a run")
    parser.add_argument("after", type=Path, help="the file of another run of the same")
    arguments = parser.parse_args()
    try:
        before, after = read(arguments.before), read(arguments.after)
    except (ValueError, OSError) as error:
        print(f"bench.peers.repeated: {error}", file=sys.stderr)
        return 2
    if not (count := compared(before, after)):
        print("bench.peers.repeated: the files have no measurement of a peer in common", file=sys.stderr)
        return 2
    found = list(differences(before, after))
    print("\n".join([*found, f"measurements compared: {count}; differences: {len(found)}"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
