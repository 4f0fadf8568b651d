"""Several processes compile: how far they are is told, one that fails says why, and none outlives its parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from railgun import kernels
from tests.forked import ROOT
from tests.frontend.serving import until
from tests.proc import children, runs

# The last ones of the list take least time. Says how many of them are left, and what was told.
_COMPILES = """
import sys
from railgun import kernel_list, kernels
kernels.processors = lambda: 2
kernels._WORK = sys.argv[2] or kernels._WORK
places = [each for each in reversed(kernels._missing())][: int(sys.argv[1])]
told = []
kernels._compile_in_processes(places, lambda done, of: told.append((done, of)))
print(len(set(places) & set(kernels._missing())), max(done for done, _ in told), max(of for _, of in told))
"""


def _started(folder: Path, count: int, work: str = "") -> "subprocess.Popen[str]":
    own = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.Popen(
        [sys.executable, "-c", _COMPILES, str(count), work],
        cwd=ROOT,
        env=own | {"RAILGUN_KERNEL_CACHE": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_they_compile_all_that_is_missing(tmp_path: Path) -> None:
    said, errors = (child := _started(tmp_path, 10)).communicate(timeout=250)
    assert (child.returncode, errors) == (0, "")
    left, done, of = map(int, said.split())
    assert left == 0
    assert 0 < done < of
    assert of > 400


def test_one_that_fails_says_why(tmp_path: Path) -> None:
    said, errors = (child := _started(tmp_path, 2, "raise SystemExit('no room')")).communicate(timeout=250)
    assert child.returncode == 1
    # Both may write at once, and their words and ends of lines stand in any order then.
    assert "no room" in errors
    assert not errors.replace("no room", "").strip()
    assert said == ""


def test_what_one_leaves_that_was_killed_is_left_to_the_parent(tmp_path: Path) -> None:
    work = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    said, errors = (child := _started(tmp_path, 2, work)).communicate(timeout=250)
    assert child.returncode == 0
    assert (
        errors.splitlines()
        == ["A process that compiled kernels was ended by signal 9: too little memory?"] * 2
    )
    assert said.startswith("2 ")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_none_outlives_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    with _started(tmp_path, 100) as parent:
        until(lambda: any(tmp_path.rglob("*.nbc")))
        working = children(parent.pid)
        assert len(working) == 2
        parent.send_signal(number)
        until(lambda: not any(map(runs, working)))
    # Those that were being compiled are all that came to the end.
    assert len(list(tmp_path.rglob("*.nbc"))) < 250


def test_how_far_it_is_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = iter((100.0, 100.0, 101.0, 102.0, 104.9, 107.0, 119.0))
    monkeypatch.setattr(kernels.time, "perf_counter", lambda: next(times_s))
    shown = kernels._Shown()
    shown.waits(12)
    shown.waits(12)
    for done in range(3, 6):
        shown.at(done, 10)
    shown.links()
    shown.end()
    waiting, begin, *lines = capsys.readouterr().err.splitlines()
    assert waiting == "another process (pid 12) compiles kernels; waiting for it, 0 s"
    assert begin.startswith("Compiling kernels into ")
    assert lines == [
        "5 of 10 functions compiled, 7 s",
        "All kernels are compiled, and are linked to one image, which takes some seconds.",
        "Compiled in 19 s.",
    ]


def test_that_kernels_are_linked_is_told_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = list[str]()
    for name in ("is_image", "_missing"):
        monkeypatch.setattr(kernels, name, list)
    monkeypatch.setattr(kernels, "use_numba", lambda: None)
    monkeypatch.setattr(kernels, "cache_folder", lambda: tmp_path / "of these sources")
    monkeypatch.setattr(kernels.kernel_image, "is_there", lambda: False)
    monkeypatch.setattr(kernels, "IS_CHECKED", False)
    monkeypatch.setattr(kernels, "load_all", lambda: said.append("loaded"))
    shown = kernels._Shown()
    monkeypatch.setattr(shown, "links", lambda: said.append("links"))
    kernels.compile_all(shown)
    assert said == ["links", "loaded"]


def test_a_terminal_has_one_line_that_changes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels.time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(kernels.sys.stderr, "isatty", lambda: True, raising=False)
    shown = kernels._Shown()
    shown.at(3, 10)
    shown.at(4, 10)
    shown.end()
    said = capsys.readouterr().err.split("\n", 1)[1]
    wiped = "\x1b[K"
    assert said == (
        f"\r3 of 10 functions compiled, 0 s{wiped}\r4 of 10 functions compiled, 0 s{wiped}\nCompiled in 0 s.\n"
    )


def test_where_nothing_was_compiled_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    kernels._Shown().end()
    assert capsys.readouterr().err == ""
