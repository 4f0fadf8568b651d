"""Measures how long single events take through peers on a broker, at a rate that all of them can keep up with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.keeping import Figures, spread
from bench.load.latencies import Latencies
from bench.peers.catalog import Peer
from bench.peers.measuring import check_values, in_turn, warm_peers
from bench.peers.work import MEASURED_EVENTS, Work

RATE_PER_S, SECONDS = 500, 15
PACED = ("one_10",)
"""The kinds of work of which it is measured."""
PART = f"at_{RATE_PER_S}"
_QUANTILES = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}


def paced(peers: Sequence[Peer], work: Work, runs: int, shifts_ms: Mapping[str, int]) -> Figures:
    """Measure peers in turn, and return the latencies of the first and, by quantile, its ratios to the others.

    The events of the first seconds, in which Java compiles, are left out.  Raises as `measuring.measured`.
    """
    seconds = max(2, round(SECONDS * work.measured / MEASURED_EVENTS))
    work = replace(work, measured=RATE_PER_S * seconds)
    name, *others = [peer.name for peer in peers]
    found: dict[str, list[Latencies]] = {peer.name: [] for peer in peers}
    with warm_peers(peers, work, runs + 1, shifts_ms) as warm:
        for peer in warm.values():
            peer.pace(RATE_PER_S)
        for each, peer in in_turn(warm, runs):
            found[each].append(peer.pace(RATE_PER_S))
        check_values(warm)
    figures: Figures = {}
    for key, quantile in _QUANTILES.items():
        by_peer = {
            each: [run.quantile_ms(quantile) for run in latencies] for each, latencies in found.items()
        }
        figures |= spread(key, by_peer[name])
        for other in others:
            pairs = zip(by_peer[name], by_peer[other], strict=True)
            figures |= spread(f"{other}_over_{key}", [theirs / of_other for theirs, of_other in pairs])
    return figures
