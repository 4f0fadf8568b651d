"""Compiles kernels for a command that computes by itself, where that was not done before."""

import sys
from functools import partial

from railgun.cli.progress import PiecesProgress
from railgun.compiling import COMPILING, Compiling
from reservoir.native import image


def compile_beforehand() -> None:
    """Compile the kernels unless there is an image of them; with a bar, on a terminal."""
    if not image.is_there():
        print(COMPILING, file=sys.stderr)
        with PiecesProgress() as bar:
            Compiling(partial(bar.at, "compiling")).run()
