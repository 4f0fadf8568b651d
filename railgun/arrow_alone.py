"""Keeps pandas out of processes that answer events, though Arrow would import it.

Arrow imports pandas, if it is installed (by the extra for Spark, or by a user's own code), when it is first given
Python's values. That takes 0.4 s, in which other threads wait for the interpreter. Such a process has no use for
pandas.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _NotFound(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("Arrow does without it in this process", name=fullname)
        return None


def without_pandas() -> None:
    """Let Arrow find that there is no pandas, for as long as this process lives. Other code may still import pandas."""
    blocked = _NotFound()
    sys.meta_path.insert(0, blocked)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(blocked)
