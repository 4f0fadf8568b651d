"""The peers: how each is started, and which packages it needs."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.peers import flink_over
from bench.peers.packages import lacking, pinned

OURS = ("railgun_unit", "railgun_engine")
"""This engine, which is measured beside every peer: one task alone, and as a library with JSON in and out."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A system that is measured.

    module, arguments: `python -m module arguments TASK` is its process.  package: that it needs, if any.  batch: it
    processes the whole file each time.  missing: returns why it cannot run here, or None.
    """

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    package: str | None = None
    batch: bool = False
    missing: Callable[[], str | None] = lambda: None

    @property
    def version(self) -> str:
        """The version that is pinned, or nothing."""
        return pinned(self.package) if self.package else ""


def _packaged(name: str, module: str, package: str) -> Peer:
    return Peer(name, module, package=package, batch=True, missing=lambda: lacking(package))


def _flink(name: str, backend: str, setup: str) -> Peer:
    arguments, package = (backend, setup), flink_over.PACKAGE
    return Peer(name, "bench.peers.flink_over", arguments, package, missing=flink_over.missing)


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        *(Peer(name, f"bench.peers.{name}") for name in OURS),
        Peer("dict_deque", "bench.peers.dict_deque"),
        _packaged("duckdb_batch", "bench.peers.duckdb_batch", "duckdb"),
        _packaged("polars_batch", "bench.peers.polars_batch", "polars"),
        _flink("flink_heap", "hashmap", "vanilla"),
        _flink("flink_heap_tuned", "hashmap", "tuned"),
        _flink("flink_rocksdb", "rocksdb", "vanilla"),
        _flink("flink_rocksdb_tuned", "rocksdb", "tuned"),
    )
}
