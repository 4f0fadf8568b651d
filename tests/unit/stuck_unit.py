"""A unit on a disk that may stop to answer: `python -m tests.unit.stuck_unit FILE ...` in the place of `railgun.unit`.

While the file is there, what the loop of the unit writes to the state of a task waits. What lanes write does not: a
commit that waits there would keep the loop from writing anything.
"""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from railgun.state.store import Store
from railgun.unit.__main__ import main


def _stuck_write(while_there: Path) -> Callable[..., None]:
    write = Store.write

    def stuck(store: Store, *images: Any, **options: Any) -> None:
        while while_there.exists() and threading.current_thread() is threading.main_thread():
            time.sleep(0.01)
        write(store, *images, **options)

    return stuck


if __name__ == "__main__":
    Store.write = _stuck_write(Path(sys.argv[1]))  # type: ignore[method-assign]
    sys.exit(main(sys.argv[2:]))
