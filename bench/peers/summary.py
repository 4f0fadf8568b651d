"""The table that docs/benchmarks.md and README begin with: this engine beside each peer, and who is exact."""

from collections.abc import Collection, Iterator, Sequence

from bench.found import Found, shown
from bench.kept_results import Results
from bench.pages import circumstances, table
from bench.peers.catalog import PEERS, WITHOUT_JSON, Peer, beside
from bench.peers.pacing import PACED, PART, RATE_PER_S
from bench.peers.work import WORKS

_FACTS = (
    f"p99.9 at {RATE_PER_S}/s",
    "equal to the bit",
    "right on arrival",
    "right in the end",
    "answers each event",
    "recovers",
)
EXACT_WORK = "one_10"
"""The work of which the share of exact values is shown: all peers have done it."""
_UNKNOWN = "not measured"
_GROUPS = (("a file of JSON in, a file out", False), ("topic in, topic out", True))


def summary(
    results: Results, works: Sequence[str] = tuple(WORKS), peers: Collection[str] = tuple(PEERS)
) -> str:
    """Return the table as Markdown. A cell has events/s and, in brackets, how many times as fast this engine was."""
    head = ("system", *(f"`{work}`" for work in works), *_FACTS)
    rows = list(_rows(results, works, peers))
    # What is known of none is left out.
    kept = [place for place in range(len(head)) if any(row[place] not in ("", _UNKNOWN) for row in rows)]
    shown_rows = [[row[place] for place in kept] for row in rows]
    lines = table([head[place] for place in kept], shown_rows)
    return "\n".join([*lines, "", circumstances(results)]) + "\n"


def in_summary(results: Results, *, on_broker: bool) -> Iterator[Peer]:
    """Yield the peers of one of the table's two groups of which anything is known."""
    for peer in PEERS.values():
        if peer.on_broker == on_broker and peer.name not in WITHOUT_JSON:
            if any(speed(results, peer, work) for work in WORKS):
                yield peer


def speed(results: Results, peer: Peer, work: str) -> str:
    """Return events/s under a work, and the ratio to this engine; nothing if it was not run.

    Of a peer that was stopped: those until then, while its windows were not full.
    """
    found = Found(results, f"{peer.name}.{work}")
    ratio = times_as_fast(results, peer, work)
    over = "" if ratio is None else f" ({shown(ratio)} ×)"
    if (filling := found.get("filling_events_per_s")) is not None:
        return f"{shown(filling)}{over}, stopped"
    if ratio is not None:
        return f"{found.number('events_per_s')}{over}"
    return found.number("events_per_s") if found.is_whole else ""


def times_as_fast(results: Results, peer: Peer, work: str) -> float | None:
    """Return how many times as fast this engine was under a work, or None.

    Of a peer that was stopped: as its windows were not full, with full ones it would not be faster.
    """
    found, ours = Found(results, f"{peer.name}.{work}"), beside(peer)[-1].name
    if (filling := found.get("filling_events_per_s")) is None:
        return found.get(f"{ours}_over")
    of_ours = Found(results, f"{ours}.{work}").get("events_per_s")
    return None if of_ours is None else of_ours / filling


def _rows(results: Results, works: Sequence[str], peers: Collection[str]) -> Iterator[list[str]]:
    for title, on_broker in _GROUPS:
        yield [f"*{title}*", *("" for _ in (*works, *_FACTS))]
        for peer in in_summary(results, on_broker=on_broker):
            if peer.name not in peers:
                continue
            speeds = [speed(results, peer, work) for work in works]
            yield [Found(results, peer.name).system, *speeds, *_facts(results, peer)]


def _facts(results: Results, peer: Peer) -> list[str]:
    """Return what holds of a peer, in the order of the columns."""
    of_single = _UNKNOWN if peer.on_broker else ""
    exact = Found(results, f"{peer.name}.{EXACT_WORK}").share("exact_share")
    disorder, single = Found(results, peer.name), Found(results, f"{peer.name}.{PACED[0]}.{PART}")
    return [
        f"{single.number('p999_ms')} ms" if single.get("p999_ms") is not None else of_single,
        exact,
        disorder.share("disorder_right_on_arrival_share"),
        disorder.share("disorder_right_in_the_end_share"),
        "no" if peer.batch else "yes",
        peer.recovers,
    ]
