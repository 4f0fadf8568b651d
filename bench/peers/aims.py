"""How many times as fast as others this engine was to be, beside what was measured."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.found import Found, shown
from bench.kept_results import Results
from bench.pages import table
from bench.peers.catalog import PEERS, Peer, beside
from bench.peers.pacing import PACED, PART, RATE_PER_S
from bench.peers.summary import times_as_fast
from bench.peers.work import WORKS


@dataclass(frozen=True, slots=True)
class Aim:
    """What was aimed at beside one peer: by work, how many times as fast this engine was to be.

    single: its p99.9 of single events was not to be above the peer's, beyond the spread.
    """

    peer: str
    times: Mapping[str, float]
    single: bool = False


_FEW_AND_MANY = {"one_10": 25, "ten_10": 25, "one_100": 200, "ten_100": 200}
AIMS = (
    Aim("flink_heap", dict.fromkeys(WORKS, 12)),
    Aim("flink_rocksdb", dict.fromkeys(WORKS, 40)),
    Aim("consumer_deque", {"one_10": 1.5, "one_100": 1.5, "ten_10": 3, "ten_100": 3}),
    Aim("kafka_streams", _FEW_AND_MANY, single=True),
    Aim("kafka_streams_tuned", _FEW_AND_MANY, single=True),
    Aim("kafka_streams_prompt", _FEW_AND_MANY, single=True),
    Aim("quix_sliding", _FEW_AND_MANY, single=True),
)


def aims(results: Results) -> str:
    """Return the table as Markdown: what was measured, of what was aimed at, and whether that was reached."""
    head = ("beside", *(f"`{work}`" for work in WORKS), f"p99.9 at {RATE_PER_S}/s")
    return "\n".join(table(head, _rows(results))) + "\n"


def _rows(results: Results) -> Iterator[list[str]]:
    for aim in AIMS:
        peer = PEERS[aim.peer]
        cells = [_speed(results, peer, work, aim.times[work]) for work in WORKS]
        yield [f"`{aim.peer}`", *cells, _single(results, peer) if aim.single else ""]


def _speed(results: Results, peer: Peer, work: str, times: float) -> str:
    ratio = times_as_fast(results, peer, work)
    if ratio is None:
        return ""
    if ratio < times and f"{peer.name}.{work}" in results.not_run:
        return f"{shown(ratio)} of {shown(times)}, stopped: not known"
    found, key = Found(results, f"{peer.name}.{work}"), f"{beside(peer)[-1].name}_over"
    return _said(ratio, times, found.get(f"{key}_least") or ratio, found.get(f"{key}_greatest") or ratio)


def _single(results: Results, peer: Peer) -> str:
    found, key = Found(results, f"{peer.name}.{PACED[0]}.{PART}"), f"{beside(peer)[-1].name}_over_p999_ms"
    ratio = found.get(key)
    if ratio is None:
        return ""
    return _said(ratio, 1, found[f"{key}_least"], found[f"{key}_greatest"])


def _said(ratio: float, times: float, least: float, greatest: float) -> str:
    """Say whether a ratio is what was aimed at. least, greatest: of its pairs."""
    verdict = "reached" if least >= times else "missed" if greatest < times else "within the spread"
    return f"{shown(ratio)} of {shown(times)}, {verdict}"
