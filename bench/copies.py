"""How long a new copy of a task takes: from another node's copy, and from the log; what live events feel of it.

    python -m bench.copies [--only NAME ...] [--runs N] [--scale F]

Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/measuring.md says what each figure is. The events are multiplied by the scale.
"""

import re
import shutil
import sys
import time
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from bench.children import ChildFailedError
from bench.command_line import Case, measure
from bench.failover import definitions_with
from bench.http import Scaled
from bench.http_run import Target
from bench.linked_copy import linked_copy
from bench.nodes import NodeCluster, node_cluster
from bench.report import Report
from bench.unit_cases import THROUGHPUT

EVENTS, _CARDS = 5_000_000, 1_000_000
# Of a quarter of a mebibyte each there are more than 200 segments.
_LINKED_EVENTS = 800_000
_RATE_PER_S, _BEFORE_S, _REST_S = 2_000, 20.0, 40.0
# The window holds all events, so that the copy takes over events and state of each.
WORKLOAD = replace(
    THROUGHPUT["payments_1x3"],
    payments=replace(THROUGHPUT["payments_1x3"].payments, cards=_CARDS, card_exponent=0.0),
    window_ms=24 * 3_600_000,
)
FROM_LOG = {"RAILGUN_CLUSTER__TRANSFER_AFTER_RECORDS": str(10**12)}
FROM_NODE = {"RAILGUN_CLUSTER__TRANSFER_AFTER_RECORDS": "1000"}
_UNLIMITED = {"RAILGUN_CLUSTER__TRANSFER_RATE_BYTES": "0"}
GIVER, TAKER = "node-1", "node-2"


class Made(NamedTuple):
    """How long a new copy took, in seconds. start_s: of the node, until its unit knows what the copy needs.

    copy_s: from then until it has caught up.  fetch: what the node says of the fetch; None if it made none.
    """

    start_s: float
    copy_s: float
    fetch: re.Match[str] | None


def make_anew(cluster: NodeCluster, settings: dict[str, str]) -> Made:
    """Delete the data of the node that takes copies, start it, and wait until they have caught up."""
    cluster.nodes[TAKER].stop()
    shutil.rmtree(cluster.folder / TAKER / "tasks")
    return start_copy(cluster, TAKER, settings)


def start_copy(cluster: NodeCluster, name: str, settings: dict[str, str]) -> Made:
    """Start a node that is away, and wait until its copies have caught up."""
    begun_s = time.monotonic()
    cluster.nodes[name].start(settings)
    cluster.await_seen(partial(_is_begun, name), "the copy does not begin")
    wanted_s = time.monotonic()
    cluster.await_whole()
    ended_s = time.monotonic()
    return Made(wanted_s - begun_s, ended_s - wanted_s, cluster.nodes[name].fetched())


def _is_begun(name: str, seen: dict[str, Any]) -> bool:
    """Whether a node's copy has been heard: it is fetched, or reads its log."""
    return any(
        copy["node"] == name and copy["state"] in ("behind", "silent")
        for task in seen["tasks"]
        for copy in task["copies"]
    )


def _sources(report: Report) -> None:
    """Measure a copy of one task made from the log, and from the other node, with the default rate and without one."""
    found: dict[str, list[float]] = {}
    with node_cluster(definitions_with(WORKLOAD, 1), (GIVER, TAKER)) as cluster:
        target = Target(cluster.service, WORKLOAD.payments, Scaled(report.scale).events(EVENTS))
        target.bulk(Scaled(report.scale).events(EVENTS), connections=1)
        cluster.await_whole()
        for _ in range(report.runs):
            log = make_anew(cluster, FROM_LOG)
            node = make_anew(cluster, FROM_NODE)
            # The rate is that of the node that gives.
            _start_again(cluster, GIVER, _UNLIMITED)
            fast = make_anew(cluster, FROM_NODE)
            _start_again(cluster, GIVER, {})
            if log.fetch or not node.fetch or not fast.fetch:
                raise ChildFailedError("a copy was not made from where it should be")
            for key, value in (
                ("copy_from_log_s", log.copy_s),
                ("copy_from_node_s", node.copy_s),
                ("copy_from_node_unlimited_s", fast.copy_s),
                ("copy_from_node_over_log", node.copy_s / log.copy_s),
                ("copy_unlimited_over_log", fast.copy_s / log.copy_s),
                ("node_start_s", node.start_s),
                ("with_start_over_log", sum(node[:2]) / sum(log[:2])),
                ("fetch_s", float(node.fetch["seconds"])),
                ("fetch_unlimited_mb_per_s", int(fast.fetch["bytes"]) / 1e6 / float(fast.fetch["seconds"])),
            ):
                found.setdefault(key, []).append(value)
    for key, values in found.items():
        report.note(key, values, 3)


def _linked(report: Report) -> None:
    """Measure how much of its segments a copy fetches that has all but the last hundredth of the events."""
    made = linked_copy(WORKLOAD, Scaled(report.scale).events(_LINKED_EVENTS))
    report.note("linked_segments", [made.segments])
    report.note("linked_fetched_share", [made.moved_bytes / made.segment_bytes], 4)


def _start_again(cluster: NodeCluster, name: str, settings: dict[str, str]) -> None:
    """Stop a node and start it with its data, and wait until its copies have caught up."""
    cluster.nodes[name].stop()
    cluster.nodes[name].start(settings)
    cluster.await_whole()


def _beside(report: Report) -> None:
    """Measure single events that the giving node answers, before a copy is made from it, and meanwhile; and the same
    where the other node is started again and needs nothing.
    """
    found: dict[str, list[float]] = {}
    scaled = Scaled(report.scale)
    with node_cluster(definitions_with(WORKLOAD, 1), (GIVER, TAKER)) as cluster:
        target = Target(cluster.service, WORKLOAD.payments, scaled.events(EVENTS))
        target.bulk(scaled.events(EVENTS), connections=1)
        cluster.await_whole()
        for _ in range(report.runs):
            start, copy = (
                target.while_doing(do, _RATE_PER_S, _BEFORE_S, _REST_S)
                for do in (
                    partial(_start_again, cluster, TAKER, FROM_LOG),
                    partial(make_anew, cluster, FROM_NODE),
                )
            )
            for key, value in (
                ("copy_beside_load_s", copy.seconds),
                ("p999_ms_before_start", start.before_ms),
                ("p999_ms_start", start.during_ms),
                ("p999_ms_before_copy", copy.before_ms),
                ("p999_ms_copy", copy.during_ms),
                ("p999_ms_copy_more", copy.during_ms - copy.before_ms),
                ("p999_ms_copy_over_start", copy.during_ms - start.during_ms),
            ):
                found.setdefault(key, []).append(value)
    for key, values in found.items():
        report.note(key, values, 3)


CASES: dict[str, Case] = {"sources": _sources, "linked": _linked, "beside": _beside}


if __name__ == "__main__":
    sys.exit(measure("copies", __doc__, CASES))
