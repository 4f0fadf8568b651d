"""Writes the tables of all that is known of peers, from a run's file."""

from collections.abc import Iterator

from bench.found import Found
from bench.kept_results import Results
from bench.pages import circumstances, not_run, table
from bench.peers.catalog import OURS, OURS_ON_BROKER, PEERS
from bench.peers.pacing import PACED, PART
from bench.peers.work import WORKS


def _over(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name.removeprefix('railgun_')} over it" for name in names)


_USED = ("work", "system", "events/s", "processor µs", "bytes written", "MiB")
_SPEED = (*_USED, *_over(OURS), "exact")
_ON_BROKER = (*_USED, "broker's µs", "broker's bytes", *_over(OURS_ON_BROKER), "exact")
_DISORDER = ("system", "w is told as", "answered", "right on arrival", "right in the end")
_PACED = ("work", "system", "p50 ms", "p99 ms", "p99.9 ms", "p99.9 over this engine's")
_BROKERS = ("broker_cpu_us_per_event", "broker_written_bytes_per_event")


def tables(results: Results) -> str:
    """Return what is known as Markdown."""
    lines = [circumstances(results)]
    for head, rows in (
        (_SPEED, _speed_rows(results, OURS, ())),
        (_ON_BROKER, _speed_rows(results, OURS_ON_BROKER, _BROKERS)),
        (_PACED, _paced_rows(results)),
        (_DISORDER, _disorder_rows(results)),
    ):
        if known := list(rows):
            lines += ["", *table(head, known)]
    return "\n".join([*lines, *not_run(results)]) + "\n"


def _speed_rows(results: Results, ours: tuple[str, ...], more: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the rows of peers that are measured beside some of this engine. more: figures that these have."""
    for work in WORKS:
        for peer in PEERS.values():
            found = Found(results, f"{peer.name}.{work}")
            if not found.is_whole or peer.on_broker != (ours == OURS_ON_BROKER):
                continue
            yield [
                work,
                found.system,
                found.with_spread("events_per_s"),
                found.number("cpu_us_per_event"),
                found.number("written_bytes_per_event"),
                found.number("rss_mib"),
                *map(found.number, more),
                *("" if peer.name in ours else found.ratio(f"{each}_over") for each in ours),
                found.share("exact_share"),
            ]


def _paced_rows(results: Results) -> Iterator[list[str]]:
    """Yield the rows of single events at a rate through a broker."""
    for work in PACED:
        for peer in PEERS.values():
            found = Found(results, f"{peer.name}.{work}.{PART}")
            if found.get("p999_ms") is not None:
                latencies = [found.with_spread(key) for key in ("p50_ms", "p99_ms", "p999_ms")]
                over = [
                    found.with_spread(f"{ours}_over_p999_ms") for ours in OURS_ON_BROKER if peer.name != ours
                ]
                yield [work, found.system, *latencies, *(over or [""])]


def _disorder_rows(results: Results) -> Iterator[list[str]]:
    for peer in PEERS:
        found = Found(results, peer)
        if found:
            shares = ("answered", "right_on_arrival", "right_in_the_end")
            told = "w − 1 ms" if found["boundary_shift_ms"] else "w"
            yield [found.system, told, *(found.share(f"disorder_{share}_share") for share in shares)]
