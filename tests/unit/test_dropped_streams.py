"""The folder of a dropped stream is deleted once its time is over, and not under a task that is still open."""

from pathlib import Path

from railgun.catalog.catalog import Catalog
from railgun.host.data_folder import TASKS
from railgun.state.lock import FolderLock
from railgun.unit.clock import Clock
from railgun.unit.dropped_streams import DroppedStreams

GRACE_S = 60.0


def test_a_folder_is_kept_for_the_time_of_grace_and_while_a_task_of_it_is_open(tmp_path: Path) -> None:
    stream = tmp_path / TASKS / "s.1"
    state = stream / "shop" / "0" / "state"
    state.mkdir(parents=True)
    now_s = 0.0
    streams, catalog = DroppedStreams(tmp_path, GRACE_S, Clock(lambda: now_s)), Catalog()
    streams.note(catalog)
    streams.remove(catalog)
    assert state.is_dir()

    now_s = GRACE_S
    lock = FolderLock(state)
    streams.remove(catalog)
    assert state.is_dir()

    lock.release()
    now_s += 2.0
    streams.remove(catalog)
    assert not stream.exists()
