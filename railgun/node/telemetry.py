"""The Prometheus metrics of a node: the metrics of its units, each sample labelled with the unit, and their states."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from railgun.host.disk_usage import measure_disk
from railgun.node.child_process import ChildProcess
from railgun.telemetry.collector import metrics_of, none_of, put_disk
from railgun.telemetry.families import ON_NODE
from railgun.telemetry.reading import DiskReading

# A unit that is processing a batch answers only between two steps of it.
ANSWER_S = 5.0
_DISK_S = 10.0


class NodeCollector(Collector):
    """Collects the metrics of a node.

    units: are asked at each scrape.
    leader: the node's process that may lead; None if it has none.
    transfer: the node's process that serves and fetches snapshots; None if it has none.
    folder: the node's folder. It is measured at most once in ten seconds.
    version: the version of this program.
    """

    def __init__(
        self,
        units: Sequence[ChildProcess],
        folder: Path,
        version: str,
        leader: ChildProcess | None = None,
        transfer: ChildProcess | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._units, self._folder, self._now_s = units, folder, now_s
        self._version, self._leader, self._transfer = version, leader, transfer
        self._disk: tuple[float, DiskReading] | None = None

    def describe(self) -> Iterable[Metric]:
        """Return the metric families without samples."""
        return metrics_of(ON_NODE, {})

    def collect(self) -> Iterator[Metric]:
        """Return the node's own metric families, and then those of its units."""
        samples = none_of(ON_NODE)
        samples["railgun_build_info"].append(((self._version,), 1.0))
        if self._folder.is_dir():
            put_disk(samples, self._read_disk())
        samples["railgun_node_units"].append(((), float(len(self._units))))
        for unit in self._units:
            index = (str(unit.index),)
            samples["railgun_node_unit_up"].append((index, float(unit.is_ready)))
            samples["railgun_node_unit_starts_total"].append((index, float(unit.starts)))
        heard = {} if self._leader is None else self._leader.heartbeat
        samples["railgun_cluster_leads"].append(((), float(bool(heard.get("leads")))))
        if heard.get("clock_ahead_ms") is not None:
            samples["railgun_node_clock_ahead_seconds"].append(((), float(heard["clock_ahead_ms"]) / 1_000))
        for name, value in (heard.get("cluster") or {}).items():
            samples[f"railgun_cluster_{name}"].append(((), float(value)))
        heard = {} if self._transfer is None else self._transfer.heartbeat
        for name, value in (heard.get("transfer") or {}).items():
            samples[f"railgun_transfer_{name}"].append(((), float(value)))
        merged = {family.name: family for family in metrics_of(ON_NODE, samples)}
        for unit in self._units:
            for family in text_string_to_metric_families(unit.metrics(ANSWER_S)):
                _merge(family, str(unit.index), merged)
        yield from merged.values()

    def _read_disk(self) -> DiskReading:
        now_s = self._now_s()
        if self._disk is None or now_s - self._disk[0] >= _DISK_S:
            self._disk = now_s, measure_disk(self._folder)
        return self._disk[1]


def _merge(family: Metric, unit: str, into: dict[str, Metric]) -> None:
    samples = [Sample(each.name, {**each.labels, "unit": unit}, each.value) for each in family.samples]
    if family.name in into:
        into[family.name].samples += samples
    else:
        family.samples = samples
        into[family.name] = family
