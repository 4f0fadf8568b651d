"""`railgun run` around the engine: rows, refusals, files, threads. The engine is stood in for."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import railgun.cli.first_start
import railgun.engine.offline
from railgun.cli.main import main
from railgun.files.formats import READABLE, WRITABLE
from tests.cli.fake_run import DEFINITIONS, HEADER, FakeRun

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> type[FakeRun]:
    monkeypatch.setattr(railgun.engine.offline, "OfflineRun", FakeRun)
    return FakeRun


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with definitions and two files of events."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.toml").write_text(DEFINITIONS)
    (tmp_path / "a.csv").write_text(HEADER + "a1,1,x\na2,2,y\n")
    (tmp_path / "b.ndjson").write_text('{"id": "b1", "ts": 3, "card": "x", "more": 1}\n')
    return tmp_path


def lines_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "out.ndjson").read_text().splitlines()]


def test_events_of_all_files_are_scored_in_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "d.toml", "a.csv", "b.ndjson", "--stream", "payments", "--out", "out.ndjson"]) == 0
    assert lines_of(folder) == [
        {"id": name, "n": n, "late_card": None, "duplicate_card": False}
        for n, name in enumerate(["a1", "a2", "b1"], 1)
    ]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(
        r"3 events in [0-9.]+ s: [0-9,]+ events/s; results in out.ndjson\n"
        r"b.ndjson: 1 column not in the stream: more\n",
        shown.err,
    )
    assert FakeRun.last.is_closed


def test_the_summary_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.csv").write_text(HEADER + "a1,1,x\na2,no,y\n")
    assert main(["run", "d.toml", "a.csv", "b.ndjson", "--out", "out.csv", "--skip-bad", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["events"], summary["refused"], summary["out"]) == (3, 1, "out.csv")
    assert summary["ignored"] == {"b.ndjson": ["more"]}
    assert summary["refused_by_reason"] == {"ts: no timestamp": 1}
    assert summary["refusals"][0].startswith("a.csv, row 2: ts: ")
    assert summary["seconds"] > 0
    assert summary["events_per_s"] == pytest.approx(3 / summary["seconds"], rel=0.5)


def test_a_bad_row_stops_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out.csv").write_text("before")
    (folder / "b.ndjson").write_text('{"id": "b1", "ts": 3}\n{"id": "b2", "ts": "soon"}\n')
    assert main(["run", "d.toml", "a.csv", "b.ndjson", "--out", "out.csv"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("railgun run: b.ndjson, row 2: ts: 'soon' is no RFC 3339 time")
    assert error.endswith("; mend the row, or leave out such rows with --skip-bad\n")
    assert (folder / "out.csv").read_text() == "before"
    assert sorted(each.name for each in folder.iterdir()) == ["a.csv", "b.ndjson", "d.toml", "out.csv"]
    assert FakeRun.last.is_closed


def test_bad_rows_are_skipped_and_keep_their_places(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.csv").write_text(HEADER + "a1,x,x\n,2,x\na3,3,x\na4\na5,5,x\na6,1e3,x\n")
    assert main(["run", "d.toml", "a.csv", "--out", "out.parquet", "--skip-bad"]) == 0
    table = pq.read_table(folder / "out.parquet")
    assert table["id"].to_pylist() == ["a1", None, "a3", None, "a5", "a6"]
    assert table["n"].to_pylist() == [None, None, 1, None, 2, None]
    assert table["duplicate_card"].to_pylist() == [None, None, False, None, False, None]
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith("6 events in ")
    assert shown[1] == "4 rows refused, with nulls as results; by reason, each with its first:"
    assert [each.partition(";")[0] for each in shown[2:]] == [
        "  ts: no timestamp, 2 rows",
        "  id: null, 1 row",
        "  row: unreadable, 1 row",
    ]
    assert [each.partition("; ")[2].partition(": ")[0] for each in shown[2:]] == [
        "a.csv, row 1",
        "a.csv, row 2",
        "a.csv, row 4",
    ]


def test_nothing_but_bad_rows(folder: Path) -> None:
    (folder / "a.csv").write_text(HEADER + "a1,x,x\na2,y,x\n")
    assert main(["run", "d.toml", "a.csv", "--out", "out.parquet", "--skip-bad"]) == 0
    assert pq.read_table(folder / "out.parquet")["n"].to_pylist() == [None, None]


def test_no_events(folder: Path) -> None:
    (folder / "a.csv").write_text(HEADER)
    assert main(["run", "d.toml", "a.csv", "--out", "out.parquet"]) == 0
    table = pq.read_table(folder / "out.parquet")
    assert table.column_names == ["id", "n", "late_card", "duplicate_card"]
    assert len(table) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.toml", "a.csv", "--out", "o.csv"], "gone.toml: No such file or directory; is the path right?"),
        (["d.toml", "gone.csv", "--out", "o.csv"], "gone.csv: No such file or directory; is the path right?"),
        (["d.toml", "a.csv", "--out", "o.xls"], "o.xls: results are written to files ending in .parquet,"),
        (["d.toml", "a.csv", "--out", "no/o.csv"], "no/o.csv: it cannot be written: No such file or directory"),
        (["d.toml", "a.csv", "--out", "a.csv"], "a.csv: it is read from and cannot be written to"),
        (["d.toml", "a.csv", "--out", "./a.csv"], "a.csv: it is read from and cannot be written to"),
        (["d.toml", "a.csv", "--out", "o.csv", "--stream", "payment"], "d.toml: unknown stream 'payment'; did"),
        (["d.toml", "a.csv", "--out", "o.csv", "--data", "."], ".: a run begins anew, and the folder is not empty"),
        (["d.toml", "d.toml", "--out", "o.csv"], "d.toml: events are read from files ending in .parquet, .csv,"),
    ],
)  # fmt: skip
def test_wrong_use(words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"railgun run: {message}")
    assert error.count("\n") == 1
    assert not list(folder.glob("o.*"))


def test_a_file_that_is_not_there_is_missed_before_kernels_are_compiled(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiling() -> None:
        raise AssertionError("the kernels are compiled")

    monkeypatch.setattr(railgun.cli.first_start, "compile_beforehand", compiling)
    for command in (["run", "--out", "o.csv"], ["bench"]):
        assert main([command[0], "d.toml", "a.csv", "gone.csv", *command[1:]]) == 2
        assert f"railgun {command[0]}: gone.csv: No such file" in capsys.readouterr().err


def test_several_streams_need_a_choice(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d.toml").write_text(DEFINITIONS + '[streams.clicks.fields]\npage = "string"\n')
    assert main(["run", "d.toml", "a.csv", "--out", "o.csv"]) == 2
    message = "railgun run: d.toml: it defines payments, clicks; say which one with --stream\n"
    assert capsys.readouterr().err == message


def test_a_later_file_is_checked_before_the_first_is_scored(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "z.csv").write_text("id,ts,cart\n")
    assert main(["run", "d.toml", "a.csv", "z.csv", "--out", "o.csv"]) == 2
    assert "z.csv: there is no column for the field card" in capsys.readouterr().err


def test_an_error_of_the_engine_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeRun, "failing_after", 1)
    assert main(["run", "d.toml", "a.csv", "b.ndjson", "--out", "o.csv"]) == 2
    message = "railgun run: segment: No space left on device; free space, then run it again\n"
    assert capsys.readouterr().err == message
    assert sorted(each.name for each in folder.iterdir()) == ["a.csv", "b.ndjson", "d.toml"]
    assert FakeRun.last.is_closed


def test_the_data_folder_is_the_engines(folder: Path) -> None:
    assert main(["run", "d.toml", "a.csv", "--out", "o.csv", "--data", "kept"]) == 0
    assert FakeRun.last.folder == Path("kept")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing(number: int, code: int, folder: Path) -> None:
    (folder / "a.csv").write_text(HEADER + "".join(f"a{n},{n},x\n" for n in range(400_000)))
    command = [sys.executable, "-m", "tests.cli.interrupted", "run", "d.toml", "a.csv", "--out", "o.csv"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            while not list(folder.glob(".o.csv.*.partial")):
                assert process.poll() is None
            process.send_signal(number)
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code
    assert error == f"railgun run: {'interrupted' if number == signal.SIGINT else 'terminated'}\n"
    assert sorted(each.name for each in folder.iterdir()) == ["a.csv", "b.ndjson", "d.toml"]


def test_help_names_every_suffix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    said = capsys.readouterr().out.split()
    assert all(said.count(suffix) == 2 for suffix in WRITABLE)
    assert all(said.count(suffix) >= 1 for suffix in READABLE)
