"""The workloads: for each its definitions and its generator."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bench.workloads import fraud, nexmark, theodolite, tiktok

SEED = 1


@dataclass(frozen=True, slots=True)
class Workload:
    """Work for one stream.

    blocks: yields its events without an end, for a scale and a seed. The scale is that of the number of events in a
    window; what each key has of them stays.
    """

    name: str
    blocks: Callable[[float, int], Iterator[pa.RecordBatch]]

    @property
    def definitions(self) -> Path:
        """The definitions file."""
        return Path(__file__).with_name(f"{self.name}.toml")


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("tiktok", tiktok.blocks),
        Workload("theodolite", theodolite.blocks),
        Workload("nexmark", nexmark.blocks),
        Workload("fraud", fraud.blocks),
    )
}
