"""A guest: it, and what it starts, has the lowest priority; nobody else in its session does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from railgun.cli import guest
from railgun.cli.main import main

pytestmark = pytest.mark.skipif(
    not hasattr(os, "SCHED_IDLE") or os.sched_getscheduler(0) == os.SCHED_IDLE,
    reason="policies of Linux, seen from one that is no guest",
)

_SAID = "import os; print(os.sched_getscheduler(0) == os.SCHED_IDLE, os.nice(0))"
_GUEST = (
    "import subprocess, sys; from railgun.cli.guest import be_a_guest; be_a_guest(); "
    f"subprocess.run([sys.executable, '-c', {_SAID!r}], check=True)"
)


def said(program: str, *, own_session: bool = False) -> str:
    """What a Python program prints."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=own_session)
    return done.stdout


def test_what_a_guest_starts_is_one_too() -> None:
    assert said(_GUEST) == "True 19\n"


def processors_of_a_guest(argument: str) -> int:
    program = (
        f"import os; from railgun.cli.guest import be_a_guest; be_a_guest({argument}); "
        "print(len(os.sched_getaffinity(0)))"
    )
    return int(said(program))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is nothing to leave to others")
def test_a_guest_leaves_processors_to_others() -> None:
    there = len(os.sched_getaffinity(0))
    assert processors_of_a_guest("") == there // 2
    assert processors_of_a_guest("1") == 1
    assert processors_of_a_guest("0") == processors_of_a_guest("1024") == there


def test_half_of_what_a_quota_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(guest, "os", _System(chosen))
    monkeypatch.setattr(guest, "processors_here", lambda: 5)
    guest.be_a_guest()
    guest.be_a_guest(7)
    assert chosen == [2, 7]


class _System:
    """One with 64 processors and no policies; notes how many are chosen."""

    def __init__(self, chosen: list[int]) -> None:
        self._chosen = chosen

    def getsid(self, process: int) -> int:
        return process

    def getpid(self) -> int:
        return 0

    def nice(self, by: int) -> None:
        raise OSError

    def sched_getaffinity(self, process: int) -> set[int]:
        return set(range(64))

    def sched_setaffinity(self, process: int, processors: set[int]) -> None:
        self._chosen.append(len(processors))


@pytest.mark.parametrize("separator", [",", "-"])
@pytest.mark.parametrize(
    ("processors", "chosen"), [(0, set(range(8))), (4, {2, 3, 6, 7}), (2, {3, 7}), (3, {3, 6, 7}), (1, {7})]
)
def test_a_guest_takes_whole_cores(
    separator: str, processors: int, chosen: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four cores with two threads each, as Linux numbers them."""
    for number in range(8):
        (tmp_path / str(number)).write_text(f"{number % 4}{separator}{number % 4 + 4}\n")
    monkeypatch.setattr(guest, "_THREADS", f"{tmp_path}/{{}}")
    assert guest._chosen(set(range(8)), processors) == chosen


def test_a_guest_where_nothing_tells_threads_from_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest, "_THREADS", f"{tmp_path}/{{}}")
    assert guest._chosen({0, 2, 5}, 1) == {5}


@pytest.mark.parametrize("cores", ["0", "-1", "1025", "99999999999", "two", "\u0662", ""])
@pytest.mark.parametrize("command", ["backfill", "validate"])
def test_a_number_of_cores_that_cannot_be(
    command: str, cores: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "d.toml", f"--cores={cores}"]) == 2
    assert f"{cores} is neither * nor a number from 1 to 1024" in capsys.readouterr().err


AUTOGROUP = Path("/proc/self/autogroup")
_HAS_AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")
needs_autogroups = pytest.mark.skipif(
    not _HAS_AUTOGROUPS.is_file() or _HAS_AUTOGROUPS.read_text().strip() != "1",
    reason="this system shares processors among processes",
)
_BE_A_GUEST = "import os, sys, time, signal; from railgun.cli.guest import be_a_guest; be_a_guest(); "


@needs_autogroups
@pytest.mark.parametrize("own_session", [True, False])
def test_the_session_of_a_guest_is_lowered_and_nobody_elses(own_session: bool) -> None:
    before = AUTOGROUP.read_text()
    assert said(f"{_GUEST}; print(open('{AUTOGROUP}').read())", own_session=own_session).split()[-1] == "19"
    assert AUTOGROUP.read_text() == before


@needs_autogroups
@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ("print('said')", 0),
        ("sys.exit(3)", 3),
        ("raise SystemExit('why')", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
    ],
)
def test_a_guest_ends_as_what_it_goes_on_as(ends: str, code: int) -> None:
    command = [sys.executable, "-c", "print('before'); " + _BE_A_GUEST + ends]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stdout.split() == ["before", *(["said"] if not code else [])]


@needs_autogroups
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on(number: signal.Signals) -> None:
    # In short naps: Python minds one that comes on the way to its sleep only after that.
    handled = f"""
signal.signal({int(number)}, lambda *_: sys.exit(7))
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""
    with subprocess.Popen([sys.executable, "-c", _BE_A_GUEST + handled], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(30) == 7


@needs_autogroups
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_at_once_is_passed_on_too(number: signal.Signals) -> None:
    """Before the command has got round to saying what is to become of signals."""
    at_once = (
        f"import os, signal; fork = os.fork; at_once = lambda p: p and (os.kill(os.getpid(), {int(number)}), p)[1]; "
        "os.fork = lambda: at_once(fork()); "
    )
    program = at_once + _BE_A_GUEST + "time.sleep(60)"
    done = subprocess.run([sys.executable, "-c", program], check=False, stderr=subprocess.DEVNULL)
    assert done.returncode == 128 + number


@needs_autogroups
def test_a_guest_is_stopped_and_goes_on_with_its_command() -> None:
    shown = "print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", _BE_A_GUEST + shown], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGTSTP)
        await_state(process.pid, "T")
        await_state(child, "T")
        process.send_signal(signal.SIGCONT)
        await_state(process.pid, "S")
        await_state(child, "S")
        process.kill()


@needs_autogroups
def test_a_guest_that_is_stopped_at_once_is_stopped_with_its_command() -> None:
    """Before its session has begun, which takes long here."""
    at_once = (
        "import os, signal, time; fork, setsid = os.fork, os.setsid; "
        "at_once = lambda p: p and (print(p, flush=True), os.kill(os.getpid(), signal.SIGTSTP), p)[-1]; "
        "os.fork = lambda: at_once(fork()); os.setsid = lambda: (time.sleep(0.5), setsid()); "
    )
    program = at_once + _BE_A_GUEST + "time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            await_state(process.pid, "T")
            await_state(child, "T")
            process.send_signal(signal.SIGCONT)
            await_state(process.pid, "S")
            await_state(child, "S")
        finally:
            process.kill()


def await_state(process_id: int, state: str) -> None:
    """Until the system says that of a process."""
    for _ in range(600):
        if Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] == state:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {process_id} does not come to be {state}")


@needs_autogroups
def test_it_is_told_how_it_ended_where_nobody_was_to_be() -> None:
    ignores = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
    done = subprocess.run([sys.executable, "-c", ignores + _BE_A_GUEST + "sys.exit(3)"], check=False)
    assert done.returncode == 3


@needs_autogroups
def test_a_killed_guest_leaves_nothing_behind() -> None:
    shown = "print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", _BE_A_GUEST + shown], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert child != process.pid
        process.kill()
        # Its end of the pipe is closed with it.
        assert process.stdout.read() == b""
    assert not Path(f"/proc/{child}/cmdline").is_file() or not Path(f"/proc/{child}/cmdline").read_bytes()


@needs_autogroups
def test_it_says_where_it_would_be_left_behind() -> None:
    """Where the system refuses to end it with its command."""
    refused = (
        "import ctypes; from types import SimpleNamespace; "
        "ctypes.CDLL = lambda name: SimpleNamespace(prctl=lambda *_: -1); "
    )
    program = refused + _BE_A_GUEST + "print(os.getppid(), os.getpid())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    parent, child = done.stdout.split()
    assert f"where {parent} is killed, {child} goes on" in done.stderr


@pytest.mark.parametrize(
    ("words", "is_guest"),
    [
        ([], False),
        (["--priority", "idle"], True),
        (["--broker", "127.0.0.1:9"], True),
        (["--deepen", "--url", "http://127.0.0.1:9"], True),
        (["--deepen", "--url", "http://127.0.0.1:9", "--priority", "normal"], False),
        (["--deepen", "--give-up", "--url", "http://127.0.0.1:9"], False),
    ],
)
def test_a_backfill_beside_what_answers_is_a_guest_unless_told_otherwise(
    words: list[str], is_guest: bool, tmp_path: Path
) -> None:
    """Known before anything else is looked at: the definitions are missing."""
    line = [
        "backfill",
        str(tmp_path / "d.toml"),
        "h",
        "--data",
        str(tmp_path / "data"),
        "--until",
        "0",
        *words,
    ]
    program = f"import os; from railgun.cli.main import main; main({line!r}); {_SAID}"
    assert said(program).startswith(str(is_guest))


def test_spark_submit_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    test_a_backfill_beside_what_answers_is_a_guest_unless_told_otherwise(
        ["--priority", "idle"], False, tmp_path
    )
