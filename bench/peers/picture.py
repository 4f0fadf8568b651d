"""Draws the throughput of this engine and its peers as bars, from a run's file."""

from collections.abc import Iterator

from bench.found import Found
from bench.kept_results import Results
from bench.pages import circumstances
from bench.peers.catalog import OURS, OURS_ON_BROKER
from bench.peers.summary import in_summary, speed
from bench.svg import document, text

PICTURED = "one_10"
_ROW, _LEFT, _BARS, _TITLE = 24, 210, 340, 44
_OURS, _THEIRS, _BATCH = "#0b6e99", "#94a3b8", "#dbe2ea"


def picture(results: Results) -> str:
    """Return an SVG document: a panel for those without a broker, and one for those on a broker. Bars are linear."""
    pieces, y = list[str](), 16.0
    for title, on_broker in (
        (
            "Events/s, a file of JSON in, a file out (one hour, 10 events of a card; light: no answer per event)",
            False,
        ),
        ("Events/s, Kafka topic in, topic out", True),
    ):
        pieces.append(text(16, y + 14, title, size=14))
        bars = list(_bars(results, on_broker=on_broker, y=y + _TITLE - 16))
        pieces += [piece for bar in bars for piece in bar]
        y += _TITLE + _ROW * len(bars)
    return document(pieces, y, circumstances(results))


def _bars(results: Results, *, on_broker: bool, y: float) -> Iterator[list[str]]:
    """Yield the pieces of each bar, one below the other."""
    found = {
        peer: Found(results, f"{peer.name}.{PICTURED}").get("events_per_s") or 0.0
        for peer in in_summary(results, on_broker=on_broker)
    }
    greatest = max(found.values(), default=0.0) or 1.0
    for place, (peer, events_per_s) in enumerate(found.items()):
        at, width = y + place * _ROW, _BARS * events_per_s / greatest
        is_ours = peer.name in (*OURS, *OURS_ON_BROKER)
        colour = _OURS if is_ours else _BATCH if peer.batch else _THEIRS
        yield [
            text(_LEFT - 8, at + 15, peer.name, anchor="end"),
            f'<rect x="{_LEFT}" y="{at + 3:.0f}" width="{max(width, 1):.1f}" height="{_ROW - 7}" fill="{colour}"/>',
            text(_LEFT + max(width, 1) + 8, at + 15, speed(results, peer, PICTURED)),
        ]
