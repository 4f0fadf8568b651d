"""What a run's file says of one part of a bench, as the text of a table."""

from bench.kept_results import Results

_DIGITS = 3


class Found:
    """The figures of a part as text. name: as `Results` has it."""

    def __init__(self, results: Results, name: str) -> None:
        self._figures = results.figures
        self.name, self._run = name, results.runs.get(name)

    def __bool__(self) -> bool:
        return self._run is not None

    def __getitem__(self, key: str) -> float:
        return self._figures[f"{self.name}.{key}"]

    @property
    def figures(self) -> list[str]:
        """The names of its figures."""
        parts = (key.rpartition(".") for key in self._figures)
        return [figure for what, _, figure in parts if what == self.name]

    @property
    def is_whole(self) -> bool:
        """Whether all of the work was measured."""
        return f"{self.name}.events_per_s" in self._figures

    @property
    def system(self) -> str:
        """The peer's name and version."""
        version = self._run["version"] if self._run else ""
        return f"`{self.name.partition('.')[0]}` {version}".rstrip()

    def number(self, key: str) -> str:
        """Three digits of a figure, more of a large one."""
        return shown(self[key])

    def with_spread(self, key: str) -> str:
        """The median, and the least and the greatest behind it."""
        return f"{self.number(key)} ({self.number(f'{key}_least')} .. {self.number(f'{key}_greatest')})"

    def get(self, key: str) -> float | None:
        """A figure, or None."""
        return self._figures.get(f"{self.name}.{key}")

    def ratio(self, key: str) -> str:
        """The median and the spread of a ratio of times, then that of processor times."""
        return f"{self.with_spread(key)}; {self.number(f'{key}_by_cpu')}"

    def share(self, key: str) -> str:
        """A share in percent, 100 % only if it is all; nothing if it is not known."""
        value = self.get(key)
        if value is None:
            return ""
        percent = value * 100
        return f"{percent:.0f} %" if percent in (0, 100) else f"{min(percent, 99.9):.1f} %"


def shown(value: float) -> str:
    """Three digits of a number, more of a large one."""
    if value >= 10 ** (_DIGITS - 1):
        digits = len(str(int(value))) - _DIGITS
        return f"{round(value / 10**digits) * 10**digits:,}"
    return f"{value:.{_DIGITS}g}"
