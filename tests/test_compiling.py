"""The first start, which compiles: it ends when it is asked to, and what keeps it from starting is told before."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from railgun.cli.first_start import compile_beforehand
from railgun.compiling import COMPILING, Compiling, CompilingStoppedError, LoggedCompiling
from railgun.engine.engine import Engine
from railgun.kernel_progress import LINKING
from railgun.logs.setup import FIELDS
from tests.forked import ROOT
from tests.frontend.serving import PATIENCE_S, until

SERVE = ["serve", "--data", "data", "--http", "127.0.0.1:0"]
# Nobody is asked there before all is compiled.
NODE = ["node", "--data", "data", "--broker", "127.0.0.1:9", "--units", "1"]


@contextmanager
def first_start(folder: Path, words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A command in a folder, where nothing is compiled yet."""
    (folder / "tmp").mkdir(exist_ok=True)
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RAILGUN_") and name != "NUMBA_CACHE_DIR"
    }
    own |= {
        "RAILGUN_KERNEL_CACHE": str(folder / "cache"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "railgun", *words]
    child = subprocess.Popen(command, cwd=folder, env=own, stderr=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stderr is not None
        child.stderr.close()


def compiled(folder: Path) -> int:
    """How many kernels there are by now."""
    return sum(1 for _ in (folder / "cache").rglob("*.nbc"))


def nobody_compiles(folder: Path) -> bool:
    with (folder / "cache" / "compiling.lock").open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize(
    ("words", "number", "code", "said"),
    [
        (SERVE, signal.SIGTERM, 0, "stopped"),
        (NODE, signal.SIGINT, 0, "stopped"),
    ],
)
def test_a_first_start_can_be_ended_while_it_compiles(
    words: list[str], number: signal.Signals, code: int, said: str, tmp_path: Path
) -> None:
    with first_start(tmp_path, words) as child:
        until(lambda: compiled(tmp_path) > 0)
        child.send_signal(number)
        _, told = child.communicate(timeout=PATIENCE_S)
        assert child.returncode == code, told
        assert said in told.splitlines()[-1]
    assert "Traceback" not in told
    # Nothing was opened, nothing goes on, and nothing is left.
    found = {each.name for each in (tmp_path / "data").rglob("*")}
    assert not found & {"VERSION", "log", "units"}
    assert nobody_compiles(tmp_path)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not list((tmp_path / "cache").rglob("*.image"))


def test_a_folder_in_use_is_told_before_anything_is_compiled(tmp_path: Path) -> None:
    with Engine(tmp_path / "data"), first_start(tmp_path, SERVE) as child:
        _, told = child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 2
    assert f"in use by process {os.getpid()}" in told
    assert compiled(tmp_path) == 0


def test_a_nodes_folder_in_use_is_told_before_anything_is_compiled(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with (data / "node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        with first_start(tmp_path, NODE) as child:
            _, told = child.communicate(timeout=PATIENCE_S)
            assert child.returncode == 2
    assert "another node, process 4711, uses this folder" in told
    assert compiled(tmp_path) == 0


@pytest.mark.parametrize("words", [SERVE, NODE])
def test_nobody_compiles_for_a_process_that_was_killed(words: list[str], tmp_path: Path) -> None:
    with first_start(tmp_path, words) as child:
        until(lambda: compiled(tmp_path) > 0)
        child.kill()
        child.wait()
        until(lambda: nobody_compiles(tmp_path))


def test_what_compiles_ends_with_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one has outlived the process that started it."""
    pid_file = tmp_path / "pid"
    sleeper = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    starts = (
        f"import subprocess, sys; print(subprocess.Popen({sleeper}).pid, file=open({str(pid_file)!r}, 'w'))"
    )

    def starts_another(*_: str) -> list[str]:
        return [sys.executable, "-c", starts]

    monkeypatch.setattr("railgun.compiling.child_python", starts_another)
    Compiling().run()
    pid = int(pid_file.read_text())
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


class Told:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.said = list[object]()

    def at(self, done: int, of: int) -> None:
        self.said.append((done, of))

    def waits(self, pid: int | None) -> None:
        self.said.append(pid)

    def links(self) -> None:
        self.said.append("links")


@pytest.fixture
def tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """What compiles waits for another process, says twice how far it is, and links."""
    says = "[told.waits(12), told.waits(None), told.at(3, 10), told.at(7, 10), told.links()]"
    command = [sys.executable, "-c", f"from railgun.compiling import _Written; told = _Written(); {says}"]
    monkeypatch.setattr("railgun.compiling.child_python", lambda *_: command)


@pytest.mark.usefixtures("tells")
def test_how_far_it_is_is_passed_on() -> None:
    Compiling(told := Told()).run()
    assert told.said == [12, None, (3, 10), (7, 10), "links"]


@pytest.mark.usefixtures("tells")
def test_how_far_it_is_is_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "railgun.compiling"):
        Compiling().run()
    first, last = caplog.records
    assert first.getMessage() == "another process compiles kernels, and is waited for"
    assert vars(first)[FIELDS] == {"pid": 12}
    assert last.getMessage() == LINKING


@pytest.mark.usefixtures("tells")
def test_a_command_says_what_it_waits_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("railgun.cli.first_start.image.is_there", lambda: False)
    compile_beforehand()
    assert capsys.readouterr().err.splitlines() == [
        COMPILING,
        "another process (pid 12) compiles kernels; waiting for it",
        LINKING,
    ]


def test_how_far_it_is_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "railgun.compiling"):
        LoggedCompiling().at(3, 10)
    (record,) = caplog.records
    assert record.getMessage() == "kernels are being compiled"
    assert vars(record)[FIELDS] == {"compiled": 3, "of": 10}


def test_kernels_that_cannot_be_compiled_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: str) -> list[str]:
        return [sys.executable, "-c", "raise SystemExit('no room')"]

    monkeypatch.setattr("railgun.compiling.child_python", fails)
    Compiling().run()
    assert caplog.messages == [
        "kernels could not be compiled beforehand, and are when they are called: exit code 1; no room"
    ]


def test_what_was_stopped_before_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("railgun.compiling._started", begun)
    compiling = Compiling()
    compiling.stop()
    with pytest.raises(CompilingStoppedError):
        compiling.run()
