"""Makes the command by which this package starts Python again."""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def child_python(*words: str) -> list[str]:
    """Return the command that runs Python with arguments such as `-m` and a module.

    Python looks for modules in the working folder first, where anybody may have put some. The child does so only if
    this package itself comes from there.
    """
    options = [] if _is_working_folder(_ROOT) else ["-P"]
    return [sys.executable, *options, *words]


def _is_working_folder(folder: Path) -> bool:
    try:
        return folder.samefile(".")
    except FileNotFoundError:
        # The working folder was deleted.
        return False
