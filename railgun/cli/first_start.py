"""Compiles kernels for a command that computes by itself, where that was not done before."""

import sys

from railgun.cli.progress import PiecesProgress
from railgun.compiling import COMPILING, Compiling
from railgun.kernel_progress import LINKING, waiting_text
from reservoir.native import image


class _Bar:
    """Shows on a bar how far compiling is; what else takes time is said once."""

    def __init__(self, bar: PiecesProgress) -> None:
        self._bar, self._is_waiting = bar, False

    def at(self, done: int, of: int) -> None:
        self._bar.at("compiling", done, of)

    def waits(self, pid: int | None) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            print(waiting_text(pid), file=sys.stderr)

    def links(self) -> None:
        print(LINKING, file=sys.stderr)


def compile_beforehand() -> None:
    """Compile the kernels unless there is an image of them; with a bar, on a terminal."""
    if not image.is_there():
        print(COMPILING, file=sys.stderr)
        with PiecesProgress() as bar:
            Compiling(_Bar(bar)).run()
