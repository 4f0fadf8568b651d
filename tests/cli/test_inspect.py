"""`railgun inspect`: what a task's folder holds, and every kind of damage to it."""

import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from railgun.cli import inspection
from railgun.cli.inspection import inspect_task, task_folders
from railgun.cli.main import main
from railgun.task.processor import TaskProcessor
from reservoir.segments.format import HEADER_BYTES, PREAMBLE_BYTES
from tests.cli.task_folder import CONTROLS, EVENTS, START_MS, make_task, open_payments, take_events

CHUNK_EVENTS, SEALED = 32, EVENTS // 32 * 32


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that no test changes."""
    data = tmp_path_factory.mktemp("data")
    make_task(data)
    return data


@pytest.fixture
def task(made: Path, tmp_path: Path) -> Path:
    """A copy of a task's folder, to be damaged."""
    [folder] = task_folders(shutil.copytree(made, tmp_path / "data"))
    return folder


def test_a_folder_that_a_process_has_open(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, first = task.parents[3], "in use, a process has it open and may write meanwhile"
    processor = open_payments(task)
    try:
        for folder in (data, task):
            assert main(["inspect", str(folder)]) == 0
            assert capsys.readouterr().out.splitlines()[0] == f"{folder}: {first}"
        assert main(["inspect", str(data), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["in_use"] is True
    finally:
        processor.close()
    assert main(["inspect", str(data)]) == 0
    assert first not in capsys.readouterr().out


def test_the_report_counts_what_was_put_in(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(made), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["sound"]
    [task] = report["tasks"]
    assert task["folder"] == str(made / "streams" / "payments" / "card" / "0")
    assert (task["events"], task["chunks"]) == (SEALED, SEALED // CHUNK_EVENTS)
    assert (task["first_ms"], task["last_ms"]) == (START_MS, START_MS + 1000 * (SEALED - 1))
    assert sum(segment["rows"] for segment in task["segments"]) == SEALED
    assert task["size_bytes"] == sum(Path(segment["file"]).stat().st_size for segment in task["segments"])
    state = task["state"]
    assert (state["epoch"], state["position"], state["stream"]) == (1, EVENTS + CONTROLS, "payments")
    assert state["clock_ms"] == START_MS + 1000 * (EVENTS - 1)
    assert (state["metrics"], state["warming"]) == (["n", "shops", "m", "latest"], [])
    assert {name: rows["items"] for name, rows in state["rows"].items()} == {"card": 10, "card,shop": 30}
    assert (state["pages"]["items"], state["strings"]["items"]) == (10, 3)


def test_the_report_in_words(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(made)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{made}/streams/payments/card/0\n  events      384 events in 12 chunks of ")
    assert ", from 2023-11-14T22:13:20Z to 2023-11-14T22:19:43Z\n" in shown
    assert re.search(r"\n    0{11}1\.seg  full, \d+ chunks, \d+ events, ", shown)
    assert (
        "\n  checkpoint  1, at log position 405, clock 2023-11-14T22:19:59Z; stream payments, 4 metrics\n"
        in shown
    )
    assert "\n    by card, shop: 30 rows (" in shown
    assert shown.endswith("\n  sound       every CRC matches\n")


def test_one_task_can_be_named(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(made / "streams" / "payments" / "card" / "0")]) == 0
    assert "384 events" in capsys.readouterr().out


def test_nothing_is_changed(task: Path) -> None:
    before = _contents(task)
    inspect_task(task)
    assert _contents(task) == before


@pytest.fixture
def running(task: Path) -> Iterator[TaskProcessor]:
    """The task opened again, with events that no checkpoint holds."""
    processor = open_payments(task)
    take_events(processor, EVENTS + 200)
    yield processor
    processor.close()


def test_the_task_may_be_running(task: Path, running: TaskProcessor) -> None:
    report = inspect_task(task)
    assert report.damage == ()
    assert report.state is not None
    assert report.state.position == EVENTS + CONTROLS
    running.checkpoints.take()
    after = inspect_task(task)
    assert after.state is not None
    assert after.state.position == EVENTS + CONTROLS + 200
    assert after.events == (EVENTS + 200) // CHUNK_EVENTS * CHUNK_EVENTS


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("name", ["describe_folder", "damaged_open_rows"])
def test_the_task_may_take_a_checkpoint_meanwhile(
    task: Path, running: TaskProcessor, monkeypatch: pytest.MonkeyPatch, name: str, is_before: bool
) -> None:
    reads = getattr(inspection, name)

    def read(*given: Any) -> Any:
        """Read once, with a checkpoint just before or after it."""
        monkeypatch.setattr(inspection, name, reads)
        found = None if is_before else reads(*given)
        take_events(running, EVENTS + 400)
        running.checkpoints.take()
        return reads(*given) if is_before else found

    monkeypatch.setattr(inspection, name, read)
    report = inspect_task(task)
    assert report.damage == ()
    assert report.state is not None
    assert report.state.position == EVENTS + CONTROLS


def test_a_segment_that_was_just_begun_is_no_damage(task: Path) -> None:
    last = sorted((task / "reservoir").glob("*.seg"))[-1]
    (last.parent / f"{int(last.stem) + 1:012d}.seg").touch()
    report = inspect_task(task)
    assert report.damage == ()
    assert report.events == SEALED


def test_a_task_that_was_never_checkpointed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_payments(tmp_path / "new").close()
    assert main(["inspect", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "\n  events      no chunk on disk\n  checkpoint  none\n  sound " in shown


def test_every_flipped_byte_of_a_segment_is_found(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for segment in sorted((task / "reservoir").glob("*.seg")):
        whole = segment.read_bytes()
        for place in [*range(0, HEADER_BYTES, 7), *range(HEADER_BYTES, len(whole), 997), len(whole) - 1]:
            segment.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert main(["inspect", str(task)]) == 1, (segment, place)
            shown = capsys.readouterr().out
            assert re.search(rf"\n  DAMAGE      {segment}, byte \d+: ", shown), (segment, place)
            assert "sound" not in shown
        segment.write_bytes(whole)
    assert main(["inspect", str(task)]) == 0


@pytest.mark.parametrize("cut", [1, 100, 5000])
def test_what_the_checkpoint_has_and_the_segments_lack_is_damage(task: Path, cut: int) -> None:
    last = sorted((task / "reservoir").glob("*.seg"))[-1]
    last.write_bytes(last.read_bytes()[:-cut])
    [damage] = inspect_task(task).damage
    assert damage.startswith(f"{last}, byte ")
    assert "the checkpoint has 12 chunks, the segments end after " in damage


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_missing_segment_is_damage(task: Path, which: int) -> None:
    segments = sorted((task / "reservoir").glob("*.seg"))
    segments[which].unlink()
    report = inspect_task(task)
    if which == 0:
        # The oldest are deleted as time goes on; what is left begins later.
        assert report.first_ms is not None
        assert report.first_ms > START_MS
    else:
        assert report.damage


def test_all_segments_missing_is_damage(task: Path) -> None:
    for segment in (task / "reservoir").glob("*.seg"):
        segment.unlink()
    [damage] = inspect_task(task).damage
    assert damage.endswith(".seg: the segment is missing")


def test_damaged_and_missing_open_rows_are_damage(task: Path) -> None:
    (path,) = (task / "reservoir").glob("*.open")
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "CRC of open rows" in inspect_task(task).damage[0]
    path.unlink()
    assert "names this file of open rows, which is missing" in inspect_task(task).damage[0]


def test_bytes_behind_the_checkpoint_are_torn_not_damaged(
    task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = sorted((task / "reservoir").glob("*.seg"))[-1]
    with last.open("ab") as file:
        file.write(b"half a frame")
    assert main(["inspect", str(task)]) == 0
    line = f"  torn        {last}: 12 bytes at the end are no whole chunk; the next start cuts them\n"
    assert line in capsys.readouterr().out


def _flip_rows(state: Path) -> None:
    [table, *_] = sorted(state.glob("*.sst"))
    whole = bytearray(table.read_bytes())
    whole[40] ^= 0xFF
    table.write_bytes(whole)


def _drop_table(state: Path) -> None:
    for table in state.glob("*.sst"):
        table.unlink()


def _flip_manifest(state: Path) -> None:
    [manifest] = state.glob("MANIFEST-*")
    whole = bytearray(manifest.read_bytes())
    whole[20] ^= 0xFF
    manifest.write_bytes(whole)


def _drop_current(state: Path) -> None:
    (state / "CURRENT").unlink()


@pytest.mark.parametrize("damage", [_flip_rows, _drop_table, _flip_manifest, _drop_current])
def test_damaged_state_is_found(
    damage: Callable[[Path], None], task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(task / "state")
    assert main(["inspect", str(task)]) == 1
    shown = capsys.readouterr().out
    assert f"\n  DAMAGE      state in {task / 'state'}: " in shown
    assert "384 events" in shown


def test_a_segment_of_a_newer_release_is_no_damage(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = sorted((task / "reservoir").glob("*.seg"))[0]
    whole = first.read_bytes()
    head = bytearray(whole[: PREAMBLE_BYTES - 4])
    struct.pack_into("<H", head, 8, 99)
    first.write_bytes(bytes(head) + struct.pack("<I", zlib.crc32(head)) + whole[PREAMBLE_BYTES:])
    assert main(["inspect", str(task)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        f"railgun inspect: {first}: format version 99, but this release reads versions up to "
    )
    assert error.count("\n") == 1


def test_a_folder_without_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reservoir").mkdir()
    (tmp_path / "state").mkdir()
    assert main(["inspect", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(
        f"railgun inspect: {tmp_path}: it holds no task; name a data folder"
    )


def test_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "gone")]) == 2
    message = f"railgun inspect: {tmp_path / 'gone'}: No such file or directory; is the path right?\n"
    assert capsys.readouterr().err == message


def _contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [each for each in folder.rglob("*") if each.is_file()]
    return {str(each): (each.stat().st_mtime_ns, each.read_bytes()) for each in files}


def test_what_is_on_its_way_between_nodes_is_no_task(tmp_path: Path) -> None:
    beside = ("fetching", "replaced", "fetching.gone", "replaced.gone")
    places = ("tasks/s.1/k/0", *(f"tasks/s.1/k/0.{each}" for each in beside), "snapshots/0a")
    for place in places:
        (tmp_path / place / "reservoir").mkdir(parents=True)
        (tmp_path / place / "state").mkdir()
        (tmp_path / place / "state" / "CURRENT").touch()
    assert list(task_folders(tmp_path)) == [tmp_path / places[0]]
