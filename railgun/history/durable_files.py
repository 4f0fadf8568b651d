"""Writes files and names that survive a loss of power, and files that exist as a whole or not at all."""

import os
from pathlib import Path


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
