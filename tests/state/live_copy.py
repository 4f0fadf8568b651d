"""A copy of a store's folder while RocksDB is at work in it, as a crash leaves it."""

import contextlib
import shutil
from pathlib import Path


def live_copy(folder: Path, target: Path) -> Path:
    """Copy a folder, but for files that RocksDB has no more use for and deletes meanwhile."""

    def copied(source: str, place: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(source, place)

    return Path(shutil.copytree(folder, target, copy_function=copied))
