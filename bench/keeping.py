"""Measures the parts of a bench, and keeps what is known in a file after each, so that a run can be resumed."""

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.children import ChildFailedError
from bench.kept_results import Results

Figures = dict[str, float]


def spread(key: str, values: Sequence[float]) -> Figures:
    """Return the median of some values, the least and the greatest."""
    return {key: statistics.median(values), f"{key}_least": min(values), f"{key}_greatest": max(values)}


class StoppedError(Exception):
    """Something was stopped before its end. The message says why.  figures: of what it did until then."""

    def __init__(self, why: str, figures: Figures) -> None:
        super().__init__(why)
        self.figures = figures


@dataclass(frozen=True, slots=True)
class Keeping:
    """Results and the folder of their file.

    again: measure what is known, too.  failures: exceptions that say why a part has no figures.
    """

    results: Results
    folder: Path
    again: bool
    failures: tuple[type[Exception], ...] = (ChildFailedError,)

    def attempt(self, what: str, version: str, measuring: Callable[[], Figures]) -> bool:
        """Measure something unless it is known, and print its figures. Returns False if that failed.

        Of something that was stopped the figures are kept, and it is named as not run. If measuring again fails, what
        was known stays.
        """
        is_known = self.results.has(what, version)
        if is_known and not self.again:
            print(f"{what}: known already", flush=True)
            return True
        try:
            figures, why = measuring(), None
        except StoppedError as error:
            figures, why = error.figures, str(error)
        except self.failures as error:
            if is_known:
                print(f"{what}: not measured again: {error}", file=sys.stderr, flush=True)
            else:
                self.skip(what, str(error))
            return False
        self.results.note(what, version, figures, why)
        self.results.write(self.folder)
        for key, value in figures.items():
            print(f"{what + '.' + key:56}{value:>16,.6g}", flush=True)
        return True

    def why(self, what: str) -> str:
        """Return why something was not measured, now that `attempt` has returned False."""
        return self.results.not_run.get(what, f"{what} could not be measured again")

    def skip(self, what: str, why: str) -> None:
        """Say why something has no figures."""
        print(f"{what}: not run: {why}", file=sys.stderr, flush=True)
        self.results.note_missing(what, why)
        self.results.write(self.folder)
