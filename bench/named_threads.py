"""Starts `railgun`, whose threads Linux then knows by their names. Python itself does that from 3.14 on.

It is a file for `python -P`: modules come from the tree that PYTHONPATH names, not from beside this file.
"""

import ctypes
import runpy
import threading

_SET_NAME, _NAME_BYTES_MAX = 15, 15
_run = threading.Thread.run


def _run_named(self: threading.Thread) -> None:
    ctypes.CDLL(None).prctl(_SET_NAME, self.name.encode()[:_NAME_BYTES_MAX], 0, 0, 0)
    _run(self)


if __name__ == "__main__":
    threading.Thread.run = _run_named  # type: ignore[method-assign]
    runpy.run_module("railgun", run_name="__main__", alter_sys=True)
