"""The demo without a terminal: a line now and then."""

from rich.console import Console

from railgun.demo.flights import LATER_METRIC
from railgun.demo.run import Progress

_LINES = 10


class PlainLines:
    """Says how far it has come, in tenths."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said = 0
        self._said_warm = False

    def __enter__(self) -> "PlainLines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def scored(self, progress: Progress) -> None:
        later = progress.later
        if later is not None and later.warm and not self._said_warm:
            self._said_warm = True
            self._console.print(
                f"{LATER_METRIC}, added half-way, is warm after {later.seconds:.2f} s: it has read 180 days back while "
                "events came in",
                soft_wrap=True,
            )
        if progress.singles.seconds:
            if progress.done == progress.total:
                self._console.print(
                    f"{progress.done:>9,} of {progress.total:,} events, "
                    f"the last {len(progress.singles.seconds):,} one by one: {progress.singles.text()}",
                    soft_wrap=True,
                )
            return
        tenth = progress.done * _LINES // progress.total
        if tenth > self._said:
            self._said = tenth
            self._console.print(
                f"{progress.done:>9,} of {progress.total:,} events   {progress.events_per_s:>9,.0f} events/s   "
                f"batches: {progress.batches.text()}",
                soft_wrap=True,
            )

    def checked(self, done: int, total: int) -> None:
        """The check is quick; its verdict is printed at its end."""
