"""A guest: it, and what it starts, has the lowest priority; nobody else in its session does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_sessions_of_its_own_alone_are_lowered() -> None:
    autogroup = Path("/proc/self/autogroup")
    if not autogroup.is_file():
        pytest.skip("this system shares processors among processes")
    before = autogroup.read_text()
    shown = f"{_GUEST}; print(open('{autogroup}').read())"
    assert said(shown, own_session=True).split()[-1] == "19"
    said(_GUEST)
    assert autogroup.read_text() == before


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
