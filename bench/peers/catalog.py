"""The peers: how each is started, and which packages it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.peers import flink_program, jars, kafka_streams
from bench.peers.packages import lacking, pinned

OURS = ("railgun_unit", "railgun_engine")
"""This engine, which is measured beside every peer: one task alone, and as a library with JSON in and out."""
OURS_ON_BROKER = ("railgun_topics",)
"""This engine from topic to topic, which is measured beside every peer on a broker instead."""
WITHOUT_JSON = OURS[:1]
"""What reads and writes no JSON, and so is not in a table of those that do."""
_CAN_RECOVER = "can; not set up here"


@dataclass(frozen=True, slots=True)
class Peer:
    """A system that is measured.

    module, arguments: `python -m module arguments TASK` is its process.  package: that it needs, if any.  batch: it
    processes the whole file each time.  missing: returns why it cannot run here, or None.

    recovers: whether it goes on after a crash with what it held: yes, no, or a few words.
    on_broker: reads and writes topics.
    answers_each_window: has a record for each window of an event there, not one.
    pinned_version: where it is not a package's.
    """

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    package: str | None = None
    batch: bool = False
    missing: Callable[[], str | None] = lambda: None
    recovers: str = "no"
    on_broker: bool = False
    answers_each_window: bool = False
    pinned_version: str = ""

    @property
    def version(self) -> str:
        """The version that is pinned, or nothing."""
        return pinned(self.package) if self.package else self.pinned_version


def _packaged(name: str, module: str, package: str) -> Peer:
    return Peer(name, module, package=package, batch=True, missing=lambda: lacking(package))


def _flink(name: str, program: str, backend: str, setup: str) -> Peer:
    arguments, package = (program, backend, setup), flink_program.PACKAGE
    return Peer(
        name,
        "bench.peers.flink_program",
        arguments,
        package,
        missing=flink_program.missing,
        recovers=_CAN_RECOVER,
    )


def _on_broker(name: str, **how: Any) -> Peer:
    return Peer(name, f"bench.peers.{name}", on_broker=True, **how)


def _streams(name: str, setup: str) -> Peer:
    return Peer(
        name,
        "bench.peers.kafka_streams",
        (setup,),
        missing=kafka_streams.missing,
        recovers="yes",
        on_broker=True,
        answers_each_window=True,
        pinned_version=jars.STREAMS_VERSION,
    )


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        *(Peer(name, f"bench.peers.{name}", recovers="yes") for name in OURS),
        Peer("dict_deque", "bench.peers.dict_deque"),
        _packaged("duckdb_batch", "bench.peers.duckdb_batch", "duckdb"),
        _packaged("polars_batch", "bench.peers.polars_batch", "polars"),
        _flink("flink_heap", "OverRange", "hashmap", "vanilla"),
        _flink("flink_heap_tuned", "OverRange", "hashmap", "tuned"),
        _flink("flink_rocksdb", "OverRange", "rocksdb", "vanilla"),
        _flink("flink_rocksdb_tuned", "OverRange", "rocksdb", "tuned"),
        _flink("flink_datastream_heap", "KeyedSums", "hashmap", "vanilla"),
        _flink("flink_datastream_rocksdb", "KeyedSums", "rocksdb", "vanilla"),
        _flink("flink_datastream_rocksdb_tuned", "KeyedSums", "rocksdb", "tuned_timers"),
        *(_on_broker(name, recovers="yes") for name in OURS_ON_BROKER),
        _on_broker("consumer_deque"),
        _streams("kafka_streams", "vanilla"),
        _streams("kafka_streams_tuned", "tuned"),
        _streams("kafka_streams_prompt", "prompt"),
        _on_broker(
            "quix_sliding",
            package="quixstreams",
            missing=lambda: lacking("quixstreams"),
            recovers="yes",
            answers_each_window=True,
        ),
    )
}


def beside(peer: Peer) -> list[Peer]:
    """Return those of this engine that a peer is measured beside."""
    return [PEERS[name] for name in (OURS_ON_BROKER if peer.on_broker else OURS)]
