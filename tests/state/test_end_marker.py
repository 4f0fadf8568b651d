"""The mark of a log's end: what is found of it after damage, a torn write, a restart of the machine."""

from pathlib import Path
from random import Random

import pytest

from railgun.state.end_marker import EndMark, EndMarker, boot_id
from railgun.state.errors import EndMarkVersionError, StoreCorruptionError, StoreVersionError
from reservoir.files import DiskFiles
from tests.reservoir.memory_files import MemoryFiles

HERE, THERE = b"this boot".ljust(16), b"another boot".ljust(16)
PATH = Path("folder/end.mark")


def marked(path: Path, *notes: tuple[int, int], boot: bytes = HERE) -> Path:
    marker = EndMarker(DiskFiles(), path, boot)
    for note in notes:
        marker.note(*note)
    marker.close()
    return path


def found(path: Path, boot: bytes = HERE) -> EndMark | None:
    marker = EndMarker(DiskFiles(), path, boot)
    marker.close()
    return marker.found


def test_the_newest_mark_is_found(tmp_path: Path) -> None:
    path = tmp_path / "end.mark"
    assert found(path) is None
    for n in range(1, 6):
        marked(path, (n, n - 1))
        assert found(path) == EndMark(n, n - 1, is_of_this_boot=True)
        assert path.stat().st_size == 1024


def test_what_must_be_found_after_power_was_lost_is_what_was_synced(tmp_path: Path) -> None:
    path = marked(tmp_path / "end.mark", (9, 4))
    here, there = found(path), found(path, THERE)
    assert here is not None
    assert there is not None
    assert (here.least, there.least) == (9, 4)


def test_a_machine_that_does_not_say_its_boot_counts_as_restarted(tmp_path: Path) -> None:
    path = marked(tmp_path / "end.mark", (9, 4), boot=bytes(16))
    assert found(path, bytes(16)) == EndMark(9, 4, is_of_this_boot=False)


def test_this_machine_says_its_boot() -> None:
    assert boot_id() == boot_id()
    assert len(boot_id()) == 16
    assert any(boot_id())


def test_every_flipped_bit_leaves_a_mark_that_was_there(tmp_path: Path) -> None:
    whole = marked(tmp_path / "end.mark", (8, 8), (9, 9)).read_bytes()
    path = tmp_path / "flipped"
    for at in (*range(8 * 60), *range(8 * 512, 8 * 572), 8 * len(whole) - 1):
        data = bytearray(whole)
        data[at // 8] ^= 1 << at % 8
        path.write_bytes(data)
        mark = found(path)
        assert mark is not None
        assert mark.written in (8, 9)


def test_no_slot_that_can_be_read_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = marked(tmp_path / "end.mark", (8, 8), (9, 9))
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    data[522] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreCorruptionError, match=r"end\.mark.*is damaged"):
        found(path)


def test_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr("railgun.state.end_marker.VERSION", 2)
        path = marked(tmp_path / "end.mark", (8, 8))
    with pytest.raises(StoreVersionError, match="has version 2"):
        found(path)
    with pytest.raises(EndMarkVersionError) as caught:
        found(path)
    assert caught.value.version == 2


@pytest.mark.parametrize("seed", range(20))
def test_power_goes_after_any_change(seed: int) -> None:
    """What is found is a mark that was made, no older than the last that was synced."""
    files, random = MemoryFiles(), Random(seed)
    marker = EndMarker(files, PATH, HERE)
    synced_at = {len(files.journal): 0}
    for n in range(1, 13):
        marker.note(n, n)
        if random.random() < 0.4:
            marker.sync()
            synced_at[len(files.journal)] = n
    for changes in range(min(synced_at), len(files.journal) + 1):
        after = MemoryFiles.replayed(files.journal[:changes]).without_power(random)
        least = max(n for at, n in synced_at.items() if at <= changes)
        found = EndMarker(after, PATH, HERE).found
        assert least <= (0 if found is None else found.written) <= 12
