"""Makes folders that only their owner may enter, because nothing in a data folder is encrypted."""

from pathlib import Path

_OWNERS_ALONE = 0o700
# The permissions that others must not have. A group may pass through, as `backfill` is also for the user of
# Spark's jobs.
_OF_OTHERS = 0o067


def make_private(folder: Path) -> None:
    """Make a folder for its owner alone. An existing folder stays as it is. Folders above it are made as usual.

    Raises OSError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=_OWNERS_ALONE, exist_ok=True)


def exposure(folder: Path) -> str | None:
    """Return a warning about a folder whose content other users may read or change; None if they may not.

    Raises OSError.
    """
    mode = folder.stat().st_mode & 0o777
    if not mode & _OF_OTHERS:
        return None
    return (
        f"{folder}: other users of this machine may enter it (mode {mode:03o}), and nothing in it is encrypted: "
        f"chmod 700 {folder}"
    )
