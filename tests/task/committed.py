"""Reads how far the folder of a closed task is checkpointed."""

from pathlib import Path

from railgun.state.stored import StoredState
from railgun.task.meta import decode_meta
from railgun.task.recovery import split_meta


def committed_at(folder: Path) -> int:
    """The position of the checkpoint that a task's folder has; 0 without one."""
    if not (folder / "state").is_dir():
        return 0
    stored = StoredState(folder / "state")
    try:
        found = stored.commit()
    finally:
        stored.close()
    return 0 if found is None else decode_meta(split_meta(found[1])[0], str(folder)).position
