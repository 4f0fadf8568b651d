"""Writes files and names that survive a loss of power, and files and folders that exist as a whole or not at all.

Hosts, histories, the transfer process and backfills write by it.
"""

import os
import shutil
from pathlib import Path

GONE = ".gone"
"""What is appended to the name of a folder that is to be deleted."""


def make_durable(path: Path) -> None:
    """Sync a file's bytes, or a folder's names, to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_all_durable(folder: Path) -> None:
    """Sync every file in a folder, and all names, to the disk. Raises OSError."""
    for path in (*folder.rglob("*"), folder):
        make_durable(path)


def write_whole(place: Path, text: str) -> None:
    """Write a file that exists as a whole or not at all, and create its folder. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _written_beside(place, text)
    make_durable(unfinished)
    unfinished.rename(place)
    make_durable(place.parent)


def _written_beside(place: Path, text: str) -> Path:
    """Write a new file in the same folder, under a name that no other writer uses on any machine that sees the
    folder.
    """
    number = 0
    while True:
        unfinished = place.with_name(f".{place.name}.{number}")
        try:
            with unfinished.open("x", encoding="utf-8") as file:
                file.write(text)
            return unfinished
        except FileExistsError:
            number += 1


def remove_whole(folder: Path) -> None:
    """Delete a folder. A crash on the way leaves it as it was, or nothing under its name. Raises OSError.

    What such a crash leaves beside it goes with the next call, or with `remove_rest`.
    """
    shutil.rmtree(set_aside(folder))


def set_aside(folder: Path) -> Path:
    """Take away the name of a folder that is to be deleted, in one step. Returns the name that it has from now on.
    Raises OSError.
    """
    gone = gone_name(folder)
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    make_durable(folder.parent)
    return gone


def is_set_aside(folder: Path) -> bool:
    """Whether a folder has the name of one that is to be deleted."""
    return folder.name.endswith(GONE)


def remove_rest(folder: Path) -> None:
    """Delete what a crash within `remove_whole` has left, if anything."""
    shutil.rmtree(gone_name(folder), ignore_errors=True)


def gone_name(folder: Path) -> Path:
    """Return the name that a folder has while `remove_whole` deletes it."""
    return folder.with_name(folder.name + GONE)
