"""An upgrade from another revision to this tree and the step back, under load, every reply compared with the oracle's.

    python -m bench.upgrade REVISION [--only cluster embedded] [--rate N] [--seconds F]

`cluster`: a local broker, three nodes with two copies of each task, and a front-end, all of the revision. The
front-end, then each node, is stopped and started as this tree; a node loses its disk, before the last is upgraded and
behind that, so that its copies come from others; each node, then the front-end, is stopped and started as the revision
again; once more a node loses its disk.
`embedded`: one process on one folder, that is stopped, started as this tree, stopped, and started as the revision
again; then the same with a process that is killed.

The revision is checked out in this tree's .cache meanwhile. Both run on this tree's Python and packages. Prints a line
per step: how many events were answered, how many of the replies and values were wrong, and the longest wait of one
event. The exit code is 1 where something was wrong or did not start.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from bench.children import TREE, Child, ChildFailedError
from bench.load.checked_lines import CheckedLines
from bench.nodes import NodeCluster, node_cluster
from bench.process import compile_all, end_in_order, load
from bench.revision import UnknownRevisionError, changed_benches, checked_out, commit_of
from bench.service import Service
from tests.oracle.stream import Oracle

_NODES = ("node-1", "node-2", "node-3")
_CARDS, _SHOPS, _SHOWN = 40, 15, 5
_SETTINGS = {"RAILGUN_ENGINE__CHECKPOINT_INTERVAL_S": "1"}
# The logs are short. The revision may not know this setting.
_OF_THIS_TREE = {**_SETTINGS, "RAILGUN_CLUSTER__TRANSFER_AFTER_RECORDS": "100"}
# Metrics that this and every earlier release of copies knows.
_DEFINITIONS = """
[streams.sales]
time = "ts"
id = "id"
partitioners = ["card", "shop"]
partitions = 2
lateness = "2s"
[streams.sales.fields]
id = "long"
ts = "timestamp"
card = "string"
shop = "long"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS total, count_distinct(shop) AS shops FROM sales GROUP BY card OVER INFINITE"
[[metrics]]
sql = "SELECT avg(x) AS usual FROM sales GROUP BY card OVER INFINITE EXCLUDE CURRENT"
[[metrics]]
sql = "SELECT min(x) AS least, max(x) AS most, last(x) AS newest FROM sales GROUP BY card OVER SLIDING 30 SECONDS"
[[metrics]]
sql = "SELECT count(*) AS of_shop, stddev(x) AS spread FROM sales WHERE x > 10 GROUP BY shop OVER SLIDING 5 SECONDS"
[[metrics]]
sql = "DERIVE x - usual AS above, n + of_shop AS both FROM sales"
"""


def _event(number: int) -> dict[str, Any]:
    """Return the event of a number: some are late, some come again, some share a time."""
    chance = random.Random(number)
    late_ms = chance.choice((0, 0, 0, 0, 0, 0, 0, 900, 900, 9_000))
    return {
        "id": number - 1 if number and chance.random() < 0.03 else number,
        "ts": 1_700_000_000_000 + 10 * (number - number % 3) - late_ms,
        "card": f"c{chance.randrange(_CARDS)}",
        "shop": chance.randrange(_SHOPS),
        "x": chance.randrange(1_000) / 8,
    }


class Steps:
    """Takes steps one after another, each under load, and prints what came of each.

    before: the tree of the revision.  seconds: how long events come before each step.  failed: whether something was
    wrong.
    """

    def __init__(self, before: Path, rate_per_s: float, seconds: float) -> None:
        self.before, self._rate_per_s, self._seconds = before, rate_per_s, seconds
        self.failed = False

    def load_on(self, service: Service) -> CheckedLines:
        """Return a client of a service."""
        return CheckedLines(service, Oracle(_DEFINITIONS).streams["sales"], _event, self._rate_per_s)

    def take(
        self, lines: CheckedLines, name: str, act: Callable[[], object], *, is_quiet: bool = False
    ) -> None:
        """Do something under load, or between events where `is_quiet`, and check what was answered.

        Raises ChildFailedError.
        """
        begun_s = time.monotonic()
        if is_quiet:
            act()
        lines.flow()
        time.sleep(self._seconds)
        if not is_quiet:
            act()
            time.sleep(self._seconds)
        keys = [{"card": f"c{each}"} for each in range(_CARDS)] + [{"shop": each} for each in range(_SHOPS)]
        found = lines.check(keys)
        self.failed |= bool(found.wrong)
        print(
            f"{name}: {found.events} events in {time.monotonic() - begun_s:.0f} s, "
            f"{len(found.wrong)} unequal, longest wait {found.longest_s:.2f} s",
            flush=True,
        )
        for each in found.wrong[:_SHOWN]:
            print(f"    {each}", flush=True)


def _cluster(steps: Steps) -> None:
    with node_cluster(_DEFINITIONS, _NODES, _SETTINGS, steps.before) as cluster:
        try:
            with closing(steps.load_on(cluster.service)) as lines:
                _upgrade_and_back(steps, lines, cluster)
        except ChildFailedError as error:
            raise ChildFailedError(f"{error}; logs are kept in {cluster.keep_logs()}") from error


def _upgrade_and_back(steps: Steps, lines: CheckedLines, cluster: NodeCluster) -> None:
    service = cluster.service

    def front_end(tree: Path | None) -> None:
        service.stop()
        service.start(tree)

    def start(name: str, tree: Path | None) -> None:
        cluster.nodes[name].start(_OF_THIS_TREE if tree is None else _SETTINGS, tree)
        cluster.await_whole_again()

    def node(name: str, tree: Path | None) -> None:
        cluster.nodes[name].stop()
        start(name, tree)

    def new_disk(name: str, tree: Path | None) -> None:
        cluster.nodes[name].kill()
        shutil.rmtree(cluster.nodes[name].data)
        start(name, tree)
        if tree is None and not cluster.nodes[name].fetched():
            raise ChildFailedError(f"{name}: no copy has come from another node")

    steps.take(lines, "all of the revision", lambda: None)
    steps.take(lines, "front-end upgraded", partial(front_end, None))
    *first, last = _NODES
    for name in first:
        steps.take(lines, f"{name} upgraded", partial(node, name, None))
    steps.take(lines, f"{first[0]} has a new disk beside {last}", partial(new_disk, first[0], None))
    steps.take(lines, f"{last} upgraded", partial(node, last, None))
    steps.take(lines, f"{last} has a new disk", partial(new_disk, last, None))
    for name in _NODES:
        steps.take(lines, f"{name} steps back", partial(node, name, steps.before))
    steps.take(lines, "front-end steps back", partial(front_end, steps.before))
    steps.take(lines, f"{_NODES[1]} has a new disk", partial(new_disk, _NODES[1], steps.before))


def _embedded(steps: Steps) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="railgun-bench-upgrade-") as folder,
        Service(Path(folder), _DEFINITIONS, "os", environment=_SETTINGS) as service,
    ):

        def again(end: Callable[[], None], tree: Path | None) -> None:
            end()
            service.start(tree)

        service.start(steps.before)
        with closing(steps.load_on(service)) as lines:
            steps.take(lines, "one process of the revision", lambda: None)
            steps.take(lines, "stopped and upgraded", partial(again, service.stop, None))
            steps.take(lines, "stopped and stepped back", partial(again, service.stop, steps.before))
            # What a killed process has not answered may count, so it is killed between events.
            steps.take(lines, "killed and upgraded", partial(again, service.kill, None), is_quiet=True)
            steps.take(
                lines, "killed and stepped back", partial(again, service.kill, steps.before), is_quiet=True
            )
        service.stop()


CASES = {"cluster": _cluster, "embedded": _embedded}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.upgrade",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("revision", help="from where to upgrade: a git revision")
    parser.add_argument("--only", nargs="*", choices=list(CASES), help="which (default: both)")
    parser.add_argument("--rate", type=float, default=200.0, help="events in a second (default 200)")
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="of load before and after each step (default 3)"
    )
    return parser.parse_args()


def main() -> int:
    """Upgrade and step back. Returns 1 if something was wrong, 2 if the revision is not known."""
    arguments = _arguments()
    end_in_order()
    try:
        commit = commit_of(TREE, arguments.revision)
    except UnknownRevisionError as error:
        print(f"bench.upgrade: {error}", file=sys.stderr)
        return 2
    compile_all()
    with checked_out(TREE, commit) as before:
        print(
            f"{arguments.revision} ({commit[:12]}) -> this tree -> {arguments.revision}; {load()}", flush=True
        )
        if "requirements-dev.lock" in changed_benches(TREE, commit):
            print("the revision's requirements-dev.lock differs: it runs on this tree's packages")
        with Child("railgun.kernels", [], before, arguments.revision) as child:
            child.lines()
        steps = Steps(before, arguments.rate, arguments.seconds)
        for name in arguments.only or CASES:
            try:
                CASES[name](steps)
            except ChildFailedError as error:
                steps.failed = True
                print(f"{name}: {error}", flush=True)
        print("unequal or not done" if steps.failed else "all equal", flush=True)
    return int(steps.failed)


if __name__ == "__main__":
    sys.exit(main())
