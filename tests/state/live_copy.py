"""Copies of a store that is at work: what a crash at one moment would leave."""

import contextlib
import shutil
from pathlib import Path

_TRIES = 1_000


def live_copy(folder: Path, target: Path) -> Path:
    """Copy a folder as it was at one moment, while RocksDB goes on in it.

    What RocksDB's MANIFEST lists is there at any moment, but not from one to the next: a compaction that ends meanwhile
    deletes what a MANIFEST that was copied before it lists. So a copy counts where nothing came, went or was listed
    while it was made. Only logs grow: of them a copy has a beginning, as after a crash.
    """

    def copied(source: str, place: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(source, place)

    for _ in range(_TRIES):
        before = _listed(folder)
        shutil.copytree(folder, target, copy_function=copied)
        if _listed(folder) == before:
            return target
        shutil.rmtree(target)
    raise AssertionError(f"{folder}: no moment of {_TRIES} at which its files stayed as they were")


def _listed(folder: Path) -> dict[str, int]:
    """All files, with the sizes of those that list others."""
    found: dict[str, int] = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            is_list = path.name.startswith(("MANIFEST", "CURRENT"))
            found[str(path.relative_to(folder))] = path.stat().st_size if is_list else 0
    return found
