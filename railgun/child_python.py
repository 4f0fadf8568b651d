"""How this package starts Python again."""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def child_python(*words: str) -> list[str]:
    """The command that runs Python with some arguments, as `-m` and a module.

    Python looks for modules in the working folder first, where anybody may have put some. A child looks there only
    where this package is taken from there too.
    """
    options = [] if _is_working_folder(_ROOT) else ["-P"]
    return [sys.executable, *options, *words]


def _is_working_folder(folder: Path) -> bool:
    try:
        return folder.samefile(".")
    except FileNotFoundError:
        # It was deleted.
        return False
