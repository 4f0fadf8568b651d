"""Shows progress: a bar on a terminal, nothing elsewhere."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)


class _Bars:
    """Bars on stderr for as long as a block lasts, if that is a terminal."""

    def __init__(self, *columns: ProgressColumn) -> None:
        self._progress = Progress(
            *columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class RunProgress(_Bars):
    """A bar for a run over files: share, events, events per second, time left. On stderr, if that is a terminal."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[events]:,} events"),
            TextColumn("{task.fields[rate]:,.0f}/s"),
            TimeRemainingColumn(),
        )
        self._task = self._progress.add_task("starting", total=None, events=0, rate=0.0)
        self._events = 0
        self._of_rows = False

    def start(self, size_bytes: int, rows: int | None) -> None:
        """Begin the bar. It counts rows if their number is known, otherwise bytes."""
        self._of_rows = rows is not None
        self._progress.update(self._task, total=size_bytes if rows is None else rows)

    def advance(self, rows: int, read_bytes: int) -> None:
        """Note that more rows are done. read_bytes: how far the files have been read."""
        self._events += rows
        elapsed_s = self._progress.tasks[0].elapsed or 0.0
        self._progress.update(
            self._task,
            description="scoring",
            completed=self._events if self._of_rows else read_bytes,
            events=self._events,
            rate=self._events / elapsed_s if elapsed_s else 0.0,
        )


class WarmingProgress(_Bars):
    """Bars for the fills of new metrics, one for each stream. On stderr, if that is a terminal."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[warming]} warming"),
            TimeRemainingColumn(),
        )
        self._tasks: dict[str, TaskID] = {}

    def at(self, stream: str, share: float, warming: int) -> None:
        """Show a stream.

        share: how far its warming metrics have come on average, from 0 to 1.
        warming: how many of its metrics are warming.
        """
        if stream not in self._tasks:
            self._tasks[stream] = self._progress.add_task(stream, total=1.0, warming=warming)
        self._progress.update(self._tasks[stream], completed=share, warming=warming)


class PiecesProgress(_Bars):
    """A bar that counts the finished pieces of some work. On stderr, if that is a terminal."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.completed} of {task.total}"),
            TimeRemainingColumn(),
        )
        self._task = self._progress.add_task("starting", total=1)

    def at(self, what: str, done: int, total: int) -> None:
        """Show how many pieces are done. what: the work."""
        self._progress.update(self._task, description=what, completed=done, total=total)
