"""Arrow without pandas, for processes that answer events.

When Arrow is first given Python's values it imports pandas, where that is installed (by the extra for Spark, or by a
user's own code): 0.4 s in which whoever else wants the interpreter waits. Nothing in such a process has a use for it.
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
    """Let Arrow find out, once and for all in this process, that there is no pandas. Others may still import it."""
    blocked = _NotFound()
    sys.meta_path.insert(0, blocked)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(blocked)
