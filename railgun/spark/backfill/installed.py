"""Keeps what was built for the tasks of a cluster's stream: copies that are made later read the whole log, and need it
where the log says so (railgun/history/FORMAT.md).
"""

import shutil
from pathlib import Path

from railgun.history.durable_files import make_durable
from railgun.history.manifest import KEPT, installed_folder
from railgun.history.request_files import INSTALLED, DeepeningRequest, write_request


def keep_installed(ready: Path, history: str, created: int) -> None:
    """Keep a history that all tasks have taken. Durable. Raises OSError.

    ready: where it was built, or brought to.
    created: the place of the stream's first definition.
    """
    note_installed(ready, history, created)
    kept = installed_folder(ready, history)
    kept.parent.mkdir(exist_ok=True)
    shutil.rmtree(kept, ignore_errors=True)
    ready.rename(kept)
    for folder in (kept.parent, ready.parent):
        make_durable(folder)


def note_installed(ready: Path, history: str, created: int) -> None:
    """Note of which stream the folder is, so that it goes when the stream is dropped. Raises OSError."""
    write_request(ready.parent / INSTALLED, DeepeningRequest(history, created))


def remove_unfinished_work(folder: Path) -> None:
    """Remove all that a backfill has left in a stream's folder, but not what is kept."""
    kept = {KEPT, INSTALLED}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
