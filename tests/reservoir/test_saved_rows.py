"""Files of open rows: what they hold, when they are written, and what damage to them is told."""

from pathlib import Path

import pytest

from reservoir.errors import CorruptionError, ForeignSegmentError, FormatVersionError
from reservoir.open_region.saved_rows import FILES_MAX, read_rows, saved_rows_path
from reservoir.reservoir import Reservoir, Settings
from tests.reservoir.event_log import AMOUNT, NAME
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import MemoryFiles

FOLDER = Path("reservoir")
SETTINGS = Settings(bytes(16), chunk_events=16)


def a_driver(records: int = 400) -> tuple[LogDriver, MemoryFiles]:
    files = MemoryFiles()
    driver = LogDriver(FOLDER, seeded_log(4, records, name_max=30), SETTINGS, files)
    driver.set_hot((AMOUNT, NAME))
    return driver, files


def open_seqs(driver: LogDriver) -> list[int]:
    """The open rows by what the log says."""
    sealed = driver.reservoir.last_sealed or (-(2**63), -(2**63))
    records = enumerate(driver.log.records[: driver.position])
    return [seq for seq, record in records if record.accepted and (record.time, seq) > sealed]


def saved_seqs(files: MemoryFiles, numbers: list[int]) -> list[int]:
    paths = [saved_rows_path(FOLDER, number) for number in numbers]
    return [seq for path in paths for rows in read_rows(files, path, bytes(16)) for seq in rows.seq.tolist()]


def written_while_the_log_goes_on() -> None:
    """A checkpoint writes its rows long after it began. Their slots are sealed, copied and would be used again."""
    driver, files = a_driver(1_000)
    driver.run_all_until(200, [9])
    seqs, saving = open_seqs(driver), driver.reservoir.save_open_rows()
    for end in range(210, 1_001, 10):
        driver.run_all_until(end, [3])
        driver.reservoir.sync(driver.reservoir.chunks)
    assert not set(seqs) & set(open_seqs(driver))
    saving.write()
    for rows in read_rows(files, saved_rows_path(FOLDER, saving.files[0]), bytes(16)):
        assert rows.seq.tolist() == seqs
        assert rows.time.tolist() == [driver.log.records[seq].time for seq in seqs]
    driver.run_all([10])
    driver.reservoir.close()


def test_rows_are_written_as_they_were_when_the_checkpoint_began() -> None:
    written_while_the_log_goes_on()


def test_that_test_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def release_at_once(reservoir: Reservoir) -> None:
        while (copied := reservoir._writer.copied()) is not None:
            reservoir._open.release(copied.open_rows)

    collect = Reservoir._collect
    monkeypatch.setattr(Reservoir, "_collect", lambda each: (release_at_once(each), collect(each)))
    with pytest.raises(AssertionError):
        written_while_the_log_goes_on()


def test_a_checkpoint_writes_new_rows_only_until_there_are_many_files() -> None:
    files = MemoryFiles()
    driver = LogDriver(
        FOLDER, seeded_log(4, 400, name_max=30), Settings(bytes(16), chunk_events=1 << 20), files
    )
    driver.set_hot((AMOUNT, NAME))
    counts = []
    for end in range(10, 400, 10):
        driver.run_all_until(end, [3])
        saving = driver.reservoir.save_open_rows()
        saving.write()
        driver.reservoir.forget_saved_rows()
        assert saved_seqs(files, saving.files) == open_seqs(driver)
        counts.append(len(saving.files))
    assert counts[: FILES_MAX + 2] == [*range(1, FILES_MAX + 1), 1, 2]
    saving = driver.reservoir.save_open_rows()
    assert len(saving.files) == counts[-1], "there is nothing new"
    driver.reservoir.close()


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.torture)])
def test_any_flipped_bit_is_told(step: int) -> None:
    driver, files = a_driver(40)
    driver.run_all([40])
    saving = driver.reservoir.save_open_rows()
    saving.write()
    driver.reservoir.close()
    path = saved_rows_path(FOLDER, saving.files[0])
    data = files.names[path.name].data
    for place in range(0, len(data), step):
        data[place] ^= 1 << place % 8
        with pytest.raises(CorruptionError, match=path.name):
            list(read_rows(files, path, bytes(16)))
        data[place] ^= 1 << place % 8
    for size in range(0, len(data), step):
        cut = MemoryFiles()
        cut.create(path).write(bytes(data[:size]))
        with pytest.raises(CorruptionError, match=path.name):
            list(read_rows(cut, path, bytes(16)))
    data += b"x"
    with pytest.raises(CorruptionError, match="as many rows"):
        list(read_rows(files, path, bytes(16)))


def test_files_of_another_task_another_release_and_none() -> None:
    driver, files = a_driver(40)
    driver.run_all([40])
    saved = driver.checkpoint()
    driver.reservoir.close()
    path = saved_rows_path(FOLDER, 1)
    with pytest.raises(ForeignSegmentError, match="stream key"):
        list(read_rows(files, path, bytes(range(16))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reservoir.open_region.saved_rows.VERSION", 0)
        with pytest.raises(FormatVersionError, match="version 1"):
            list(read_rows(files, path, bytes(16)))
    files.delete(path)
    with pytest.raises(CorruptionError, match="names this file of open rows, which is missing"):
        driver.open(saved.length, [1])
