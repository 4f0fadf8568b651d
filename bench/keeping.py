"""Measures the parts of a bench, and keeps what is known in a file after each, so that a run can be resumed."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.children import ChildFailedError
from bench.kept_results import Results

Figures = dict[str, float]


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
        """Measure something unless it is known, and print its figures. Returns whether there are any."""
        if not self.again and self.results.has(what, version):
            print(f"{what}: known already", flush=True)
            return True
        try:
            figures = measuring()
        except self.failures as error:
            self.skip(what, str(error))
            return False
        self.results.note(what, version, figures)
        self.results.write(self.folder)
        for key, value in figures.items():
            print(f"{what + '.' + key:56}{value:>16,.6g}", flush=True)
        return True

    def skip(self, what: str, why: str) -> None:
        """Say why something has no figures."""
        print(f"{what}: not run: {why}", file=sys.stderr, flush=True)
        self.results.note_missing(what, why)
        self.results.write(self.folder)
