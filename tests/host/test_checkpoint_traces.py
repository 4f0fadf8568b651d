"""A folder in which no checkpoint was ever taken is told from all others, from outside."""

import shutil
from pathlib import Path

from railgun.host.checkpoint_traces import may_have_checkpoint
from railgun.host.data_folder import fetching_folder, replaced_folder
from railgun.wire.records import Records
from tests.cli.task_folder import log_of, open_payments
from tests.host.fetched_folder import mark_verified
from tests.task.committed import committed_at


def test_only_a_task_that_has_taken_a_checkpoint_has_one(tmp_path: Path) -> None:
    folder = tmp_path / "0"
    folder.mkdir()
    assert not may_have_checkpoint(folder)
    task = open_payments(folder)
    task.process(Records.of(log_of(10)), 0, lambda replies: None)
    assert not may_have_checkpoint(folder)
    task.checkpoints.take()
    assert may_have_checkpoint(folder)
    task.close()
    assert committed_at(folder) > 0
    assert may_have_checkpoint(folder)


def test_a_task_that_ended_before_its_first_has_none(tmp_path: Path) -> None:
    folder = tmp_path / "0"
    open_payments(folder).close()
    assert (folder / "state" / "CURRENT").is_file()
    assert not may_have_checkpoint(folder)
    # So it is unknown of one whose mark is gone, as of a release that wrote none.
    (folder / "state" / "end.mark").unlink()
    assert may_have_checkpoint(folder)


def test_what_a_fetch_has_left_beside_it_counts(tmp_path: Path) -> None:
    folder = tmp_path / "0"
    for beside in (fetching_folder(folder), replaced_folder(folder)):
        beside.mkdir()
        if beside == fetching_folder(folder):
            assert not may_have_checkpoint(folder)
            mark_verified(beside)
        assert may_have_checkpoint(folder)
        shutil.rmtree(beside)
    folder.mkdir()
    (folder / "moved_to").write_text("a folder that is not there")
    assert may_have_checkpoint(folder)
