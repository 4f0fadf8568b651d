"""A unit on a disk that may stop to answer: `python -m tests.unit.stuck_unit FILE ...` in the place of `railgun.unit`.

While the file is there, whatever the unit's loop writes to the state of a task waits. What lanes write does not: a commit
that waits there would keep the loop from writing anything.
"""

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from railgun.state.resident import Image
from railgun.state.store import Store
from railgun.unit.__main__ import main


class _Stuck:
    def __init__(self, while_there: Path) -> None:
        self._while_there, self._write = while_there, Store.write

    def write(self, store: Store, images: Sequence[Image], next_epoch: int | None = None) -> None:
        while self._while_there.exists() and threading.current_thread() is threading.main_thread():
            time.sleep(0.01)
        self._write(store, images, next_epoch)


if __name__ == "__main__":
    stuck = _Stuck(Path(sys.argv[1]))
    Store.write = lambda *given: stuck.write(*given)  # type: ignore[method-assign]
    sys.exit(main(sys.argv[2:]))
