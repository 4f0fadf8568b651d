"""Shows the demo's progress: a departures board on a terminal, a line now and then elsewhere."""

from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from railgun.demo.flights import LATER_METRIC, Flight
from railgun.demo.nodes import Failover, Nodes
from railgun.demo.nodes_panel import nodes_panel, said
from railgun.demo.run import BATCH_EVENTS, Progress

_LINES = 10


class PlainLines:
    """Prints the progress, a line for each tenth. With nodes, it also prints what happens to the one that is killed."""

    def __init__(self, console: Console, nodes: Nodes | None = None) -> None:
        self._console, self._nodes = console, nodes
        self._said = 0
        self._said_warm = False
        self._said_of_node = 0

    def __enter__(self) -> "PlainLines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def scored(self, progress: Progress) -> None:
        later = progress.later
        if later is not None and later.warm and not self._said_warm:
            self._said_warm = True
            self._say(
                f"{LATER_METRIC}, added while events came in, is warm after {later.seconds:.2f} s: it has read 180 "
                "days back"
            )
        if self._nodes is not None and self._nodes.failover is not None:
            self._say_of_node(self._nodes.failover)
        if progress.singles.seconds:
            if progress.done == progress.total:
                self._say(
                    f"{progress.done:>9,} of {progress.total:,} events, "
                    f"the last {len(progress.singles.seconds):,} one by one: {progress.singles.text()}"
                )
            return
        tenth = progress.done * _LINES // progress.total
        if tenth > self._said:
            self._said = tenth
            self._say(
                f"{progress.done:>9,} of {progress.total:,} events   {progress.events_per_s:>9,.0f} events/s   "
                f"batches: {progress.batches.text()}"
            )

    def checked(self, done: int, total: int) -> None:
        """Do nothing: the check is quick, and its verdict is printed at its end."""

    def _say_of_node(self, failover: Failover) -> None:
        """Print three lines in all: a node is killed; its tasks are answered elsewhere; it is started again."""
        if self._said_of_node == 0:
            self._say(said(replace(failover, elsewhere_s=None)))
            self._said_of_node = 1
        if self._said_of_node == 1 and failover.elsewhere_s is not None:
            self._say(said(failover))
            self._said_of_node = 2
        if self._said_of_node == 2 and failover.is_back:
            self._say(f"{failover.node} is started again")
            self._said_of_node = 3

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


# The number of departures shown, without nodes and with them.
_ROWS, _FEWER_ROWS = 12, 8
_SPARKS = "▁▂▃▄▅▆▇█"
_SPARK_SAMPLES = 48
_REFRESH_PER_S = 8
_LATE_MINUTES, _VERY_LATE_MINUTES = 15, 60


class Board:
    """Shows the progress live, as a context manager."""

    def __init__(self, console: Console, url: str, nodes: Nodes | None = None) -> None:
        self._url, self._nodes = url, nodes
        self._most_rows = _ROWS if nodes is None else _FEWER_ROWS
        self._rows: deque[tuple[Flight, dict[str, Any]]] = deque(maxlen=self._most_rows)
        self._speeds: deque[float] = deque(maxlen=_SPARK_SAMPLES)
        self._progress: Progress | None = None
        self._live = Live(console=console, refresh_per_second=_REFRESH_PER_S, get_renderable=self._render)

    def __enter__(self) -> "Board":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def scored(self, progress: Progress) -> None:
        self._progress = progress
        self._rows.extend(progress.latest)
        if not progress.singles.seconds:
            self._speeds.append(progress.newest_events_per_s)

    def checked(self, done: int, total: int) -> None:
        """Do nothing: the check is quick, and its verdict is shown at its end."""

    def _render(self) -> RenderableType:
        progress = self._progress
        if progress is None:
            return Text("Registering the metrics …", style="dim")
        panels = [self._departures(), self._figures(progress)]
        if self._nodes is not None:
            panels.insert(1, nodes_panel(self._nodes))
        return Group(*panels)

    def _departures(self) -> RenderableType:
        table = Table(expand=True, box=None, header_style="bold yellow", pad_edge=False)
        for title, justify in _COLUMNS:
            table.add_column(title, justify=justify, no_wrap=True)
        for flight, metrics in self._rows:
            table.add_row(*_cells(flight, metrics))
        for _ in range(self._most_rows - len(self._rows)):
            table.add_row()
        return Panel(table, title="[bold]DEPARTURES  New York 2013", border_style="yellow")

    def _figures(self, progress: Progress) -> RenderableType:
        table = Table.grid(expand=True, padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(ratio=1)
        table.add_row("scored", ProgressBar(progress.total, progress.done))
        speed = Text(f"{progress.done:,} of {progress.total:,} events   ")
        speed.append(f"{progress.events_per_s:,.0f} events/s  ", style="bold green")
        speed.append(_spark(self._speeds), style="green")
        table.add_row("", speed)
        table.add_row("batches of 1,000", progress.batches.text())
        table.add_row("one by one", progress.singles.text())
        table.add_row("added while it ran", _later(progress))
        title = f"{self._url}   every event durable before it is answered"
        return Panel(table, border_style="blue", title=title)


_COLUMNS: tuple[tuple[str, Any], ...] = (
    ("Due", "left"),
    ("Flight", "left"),
    ("Route", "left"),
    ("Delay", "right"),
    ("Airport 2 h", "right"),
    ("a day ago", "right"),
    ("Cancelled", "right"),
    ("Route ±", "right"),
    ("Plane 7 d", "right"),
    ("worst", "right"),
    ("miles", "right"),
    ("Last", "left"),
    ("Usual", "right"),
)


def _cells(flight: Flight, metrics: dict[str, Any]) -> list[RenderableType]:
    due = datetime.fromtimestamp(flight.scheduled / 1000, UTC)
    flights_7d, miles = metrics["flights_7d"], metrics["miles"]
    return [
        f"{due:%d %b %H:%M}",
        f"{flight.carrier}{flight.flight}",
        f"{flight.origin}→{flight.dest}",
        Text("canc.", style="red") if flight.delay is None else _minutes(flight.delay),
        _minutes(metrics["delay_2h"]),
        _minutes(metrics["delay_day_before"]),
        str(metrics["cancelled_today"]),
        "" if metrics["route_spread_30d"] is None else f"{metrics['route_spread_30d']:.0f}",
        "" if flights_7d is None else str(flights_7d),
        _minutes(metrics["worst_7d"]),
        "" if miles is None else f"{int(miles):,}",
        metrics["flew_before"] or "",
        _minutes(metrics.get(LATER_METRIC)),
    ]


def _minutes(value: float | None) -> Text:
    if value is None:
        return Text("")
    style = "red" if value >= _VERY_LATE_MINUTES else "yellow" if value >= _LATE_MINUTES else "green"
    return Text(f"{value:+.0f}", style=style)


def _later(progress: Progress) -> RenderableType:
    later = progress.later
    if later is None:
        return Text("a metric over the last 180 days, while events come in …", style="dim")
    line = Text(f"{LATER_METRIC}   ", style="bold")
    if not later.warm:
        return line.append(f"reading 180 days back: {later.share:.0%}", style="yellow")
    events = f"{later.batches * BATCH_EVENTS:,} events later" if later.batches else "at once"
    return line.append(
        f"warm after {later.seconds:.2f} s, {events}: exact from its first answer", style="green"
    )


def _spark(values: deque[float]) -> str:
    if not values:
        return ""
    highest = max(values) or 1.0
    return "".join(_SPARKS[min(len(_SPARKS) - 1, int(value / highest * len(_SPARKS)))] for value in values)
