"""How long a new copy of a task takes: from another node's copy, and from the log; what live events feel of it.

    python -m bench.copies [--only NAME ...] [--runs N] [--scale F]

Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/benchmarks.md says what each figure is. The events are multiplied by the scale.
"""

import shutil
import sys
import time
from dataclasses import replace
from functools import partial

from bench.command_line import Case, measure
from bench.failover import definitions_with
from bench.http import Scaled
from bench.http_run import Target
from bench.nodes import NodeCluster, node_cluster
from bench.report import Report
from bench.unit_cases import THROUGHPUT

_EVENTS, _CARDS = 5_000_000, 1_000_000
_RATE_PER_S, _BEFORE_S, _REST_S = 2_000, 20.0, 60.0
# The window holds all events, so that the copy takes over events and state of each.
_WORKLOAD = replace(
    THROUGHPUT["payments_1x3"],
    payments=replace(THROUGHPUT["payments_1x3"].payments, cards=_CARDS, card_exponent=0.0),
    window_ms=24 * 3_600_000,
)
_FROM_LOG = {"RAILGUN_CLUSTER__TRANSFER_AFTER_RECORDS": str(10**12)}
_FROM_NODE = {"RAILGUN_CLUSTER__TRANSFER_AFTER_RECORDS": "1000"}
_UNLIMITED = {**_FROM_NODE, "RAILGUN_CLUSTER__TRANSFER_RATE_BYTES": "0"}
_GIVER, _TAKER = "node-1", "node-2"


def _make_anew(cluster: NodeCluster, settings: dict[str, str]) -> float:
    """Delete the data of the node that takes copies, and return how many seconds it needs until they have caught up."""
    node = cluster.nodes[_TAKER]
    node.stop()
    shutil.rmtree(cluster.folder / _TAKER / "tasks")
    begun_s = time.monotonic()
    node.start(settings)
    cluster.await_whole()
    return time.monotonic() - begun_s


def _sources(report: Report) -> None:
    """Measure a copy of one task made from the log, and from the other node, with the default rate and without one."""
    found: dict[str, list[float]] = {}
    with node_cluster(definitions_with(_WORKLOAD, 1), (_GIVER, _TAKER)) as cluster:
        target = Target(cluster.service, _WORKLOAD.payments, Scaled(report.scale).events(_EVENTS))
        target.bulk(Scaled(report.scale).events(_EVENTS), connections=1)
        cluster.await_whole()
        for _ in range(report.runs):
            log_s = _make_anew(cluster, _FROM_LOG)
            node_s = _make_anew(cluster, _FROM_NODE)
            fast_s = _make_anew(cluster, _UNLIMITED)
            for key, value in (
                ("copy_from_log_s", log_s),
                ("copy_from_node_s", node_s),
                ("copy_from_node_unlimited_s", fast_s),
                ("copy_from_node_over_log", node_s / log_s),
            ):
                found.setdefault(key, []).append(value)
    for key, values in found.items():
        report.note(key, values, 3)


def _beside(report: Report) -> None:
    """Measure single events that the giving node answers, before a copy is made from it, and meanwhile."""
    found: dict[str, list[float]] = {}
    scaled = Scaled(report.scale)
    with node_cluster(definitions_with(_WORKLOAD, 1), (_GIVER, _TAKER)) as cluster:
        target = Target(cluster.service, _WORKLOAD.payments, scaled.events(_EVENTS))
        target.bulk(scaled.events(_EVENTS), connections=1)
        cluster.await_whole()
        for _ in range(report.runs):
            beside = target.while_doing(
                partial(_make_anew, cluster, _FROM_NODE), _RATE_PER_S, _BEFORE_S, _REST_S
            )
            for key, value in (
                ("copy_beside_load_s", beside.seconds),
                ("p999_ms_before_copy", beside.before_ms),
                ("p999_ms_copy", beside.during_ms),
                ("p999_ms_copy_more", beside.during_ms - beside.before_ms),
            ):
                found.setdefault(key, []).append(value)
    for key, values in found.items():
        report.note(key, values, 3)


CASES: dict[str, Case] = {"sources": _sources, "beside": _beside}


if __name__ == "__main__":
    sys.exit(measure("copies", __doc__, CASES))
