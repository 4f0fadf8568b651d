"""An engine with durability "os" after a loss of power: a prefix of what was answered; what went counts once again."""

import math
import shutil
from pathlib import Path

import pytest

import railgun
from railgun.engine.errors import FolderError
from railgun.state.end_marker import END_MARK, EndMarker
from reservoir.files import DiskFiles
from tests.engine.scoring_process import DEFINITIONS, event

EVENTS, CHECKPOINT = 240, 100


def crashed(folder: Path) -> Path:
    """A data folder as the death of its process leaves it, with a checkpoint in the middle."""
    image = folder.with_name("image")
    with railgun.Engine(folder, durability="os") as engine:
        engine.apply(DEFINITIONS)
        for number in range(EVENTS):
            engine.score("s", event(number))
            if number + 1 == CHECKPOINT:
                with engine._lock:
                    engine._streams.live("s").hosts.checkpoint()
        with engine._lock:
            shutil.copytree(folder, image)
    return image


def without_power(image: Path, folder: Path, cut_bytes: int) -> Path:
    """A copy whose log has lost its last bytes, on a machine that was started anew."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(image, folder)
    wal = max((folder / "log" / "log").glob("*.log"), key=lambda path: path.stat().st_size)
    wal.write_bytes(wal.read_bytes()[: max(0, wal.stat().st_size - cut_bytes)])
    path = folder / "log" / END_MARK
    here = EndMarker(DiskFiles(), path)
    mark = here.found
    here.close()
    assert mark is not None
    path.unlink()
    there = EndMarker(DiskFiles(), path, b"another boot".ljust(16))
    there.note(mark.written, mark.synced)
    there.close()
    return folder


@pytest.mark.parametrize("cut_bytes", [0, 1, 500, 3_000, 9_000])
def test_what_was_not_synced_goes_and_comes_again(tmp_path: Path, cut_bytes: int) -> None:
    folder = without_power(crashed(tmp_path / "data"), tmp_path / "again", cut_bytes)
    with railgun.Engine(folder, durability="os") as engine:
        kept = {task.position for task in engine.status().streams[0].tasks}
        assert max(kept) - min(kept) <= 2, "the tasks of a log have lost the same events"
        replies = [engine.score("s", event(number)) for number in range(EVENTS)]
        new = [number for number, reply in enumerate(replies) if "duplicate" not in reply]
        assert new == list(range(EVENTS - len(new), EVENTS))
        assert EVENTS - len(new) >= CHECKPOINT
        assert (len(new) > 0) == (cut_bytes > 0)
        last = engine.score("s", event(EVENTS))["metrics"]
    assert last["n"] == EVENTS + 1
    assert last["total"] == math.fsum(event(number)["x"] for number in range(EVENTS + 1))


def test_what_a_checkpoint_rests_on_must_not_go(tmp_path: Path) -> None:
    folder = without_power(crashed(tmp_path / "data"), tmp_path / "again", 1 << 30)
    with pytest.raises(FolderError, match=END_MARK):
        railgun.Engine(folder, durability="os")
    # Even without the mark: tasks whose streams the log does not know of are there.
    (folder / "log" / END_MARK).unlink()
    with pytest.raises(FolderError, match="restore the whole folder"):
        railgun.Engine(folder, durability="os")
