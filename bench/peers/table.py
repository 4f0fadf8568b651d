"""Writes the tables of docs/benchmarks.md from a run's file: no figure is written by hand.

    python -m bench.peers.table [RESULTS.json] [--page PAGE]

Without a file it takes the newest of bench/results/.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.kept_results import FOLDER, TREE, Results, read
from bench.pages import circumstances, not_run, table, written
from bench.peers.catalog import OURS, OURS_ON_BROKER, PEERS
from bench.peers.work import WORKS

MARK = "peers"
NOTHING = "No run is kept here yet.\n"


def _over(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name.removeprefix('railgun_')} over it" for name in names)


_USED = ("work", "system", "events/s", "processor µs", "bytes written", "MiB")
_SPEED = (*_USED, *_over(OURS), "exact")
_ON_BROKER = (*_USED, "broker's µs", "broker's bytes", *_over(OURS_ON_BROKER), "exact")
_DISORDER = ("system", "w is told as", "answered", "right on arrival", "right in the end")
_BROKERS = ("broker_cpu_us_per_event", "broker_written_bytes_per_event")
_DIGITS = 3


def tables(results: Results) -> str:
    """Return what is known as Markdown."""
    lines = [
        circumstances(results),
        "",
        *table(_SPEED, _speed_rows(results, OURS, ())),
        "",
        *table(_ON_BROKER, _speed_rows(results, OURS_ON_BROKER, _BROKERS)),
        "",
        *table(_DISORDER, _disorder_rows(results)),
        *not_run(results),
    ]
    return "\n".join(lines) + "\n"


def _speed_rows(results: Results, ours: tuple[str, ...], more: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the rows of peers that are measured beside some of this engine. more: figures that these have."""
    for work in WORKS:
        for peer in PEERS.values():
            found = _Found(results, f"{peer.name}.{work}")
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


def _disorder_rows(results: Results) -> Iterator[list[str]]:
    for peer in PEERS:
        found = _Found(results, peer)
        if found:
            shares = ("answered", "right_on_arrival", "right_in_the_end")
            told = "w − 1 ms" if found["boundary_shift_ms"] else "w"
            yield [found.system, told, *(found.share(f"disorder_{share}_share") for share in shares)]


class _Found:
    """The figures of a peer, or of a peer and a work, as text."""

    def __init__(self, results: Results, what: str) -> None:
        self._figures = results.figures
        self._what, self._run = what, results.runs.get(what)

    def __bool__(self) -> bool:
        return self._run is not None

    def __getitem__(self, key: str) -> float:
        return self._figures[f"{self._what}.{key}"]

    @property
    def is_whole(self) -> bool:
        """Whether all of the work was measured."""
        return f"{self._what}.events_per_s" in self._figures

    @property
    def system(self) -> str:
        """The peer's name and version."""
        version = self._run["version"] if self._run else ""
        return f"`{self._what.partition('.')[0]}` {version}".rstrip()

    def number(self, key: str) -> str:
        """Three digits of a figure, more of a large one."""
        return _shown(self[key])

    def with_spread(self, key: str) -> str:
        """The median, and the least and the greatest behind it."""
        return f"{self.number(key)} ({self.number(f'{key}_least')} .. {self.number(f'{key}_greatest')})"

    def ratio(self, key: str) -> str:
        """The median and the spread of a ratio of times, then that of processor times."""
        return f"{self.with_spread(key)}; {self.number(f'{key}_by_cpu')}"

    def share(self, key: str) -> str:
        """A share in percent; 100 % only if it is all."""
        percent = self[key] * 100
        return f"{percent:.0f} %" if percent in (0, 100) else f"{min(percent, 99.9):.1f} %"


def _shown(value: float) -> str:
    if value >= 10 ** (_DIGITS - 1):
        digits = len(str(int(value))) - _DIGITS
        return f"{round(value / 10**digits) * 10**digits:,}"
    return f"{value:.{_DIGITS}g}"


def _newest() -> Path | None:
    return max(FOLDER.glob("peers-*.json"), key=lambda path: path.stat().st_mtime, default=None)


def main() -> int:
    """Write the page. Returns 2 if it has no marks, or the file is none."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers.table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="?", type=Path, default=_newest(), help="a run's file")
    parser.add_argument("--page", type=Path, default=TREE / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    try:
        text = NOTHING if arguments.results is None else tables(read(arguments.results))
        page = arguments.page.read_text(encoding="utf-8")
        arguments.page.write_text(written(page, MARK, text), encoding="utf-8")
    except (ValueError, KeyError, OSError) as error:
        print(f"bench.peers.table: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
