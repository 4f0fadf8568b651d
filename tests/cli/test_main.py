"""The command line: commands, their help, one-line errors, exit codes, signals."""

import argparse
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from railgun import __version__
from railgun.catalog.errors import DefinitionError
from railgun.cli.failures import UsageError
from railgun.cli.main import COMMANDS, main
from railgun.cli.parser import Command
from railgun.cli.wording import _LOG_HEAD
from railgun.cluster.copies import CopyState

ROOT = Path(__file__).parents[2]


def acting(action: Callable[[], int]) -> tuple[Command, ...]:
    """A command line whose only command does this."""

    def configure(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--colour")

    return (Command("act", "acts", "Acts.", "railgun act", configure, lambda _: action()),)


def raising(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"usage: railgun {name} " in shown
    assert f"example:\n  railgun {name} " in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_the_words_of_cluster_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "--help"]) == 0
    shown = capsys.readouterr().out
    for word in (*_LOG_HEAD, *CopyState, "does not report"):
        assert f"{word}:" in shown.replace("\n", " ")
    assert all(f"{mark} " in shown for mark in ("(goes):", "; - if", "`for ever`,", "or ?"))


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n    {command.name} " in shown for command in COMMANDS)
    assert "example:\n  railgun run " in shown


def test_no_command_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: railgun" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"railgun {__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explian"], "railgun: unknown command 'explian'; did you mean explain?"),
        (
            ["fly"],
            "railgun: unknown command 'fly'; there are: " + ", ".join(command.name for command in COMMANDS),
        ),
        (
            ["explain", "x", "--formt", "dot"],
            "railgun explain: unknown option '--formt'; did you mean --format?",
        ),
        (["explain", "x", "y"], "railgun explain: too many arguments: y; see railgun explain --help"),
        (
            ["inspect"],
            "railgun inspect: the following arguments are required: DIR; see railgun inspect --help",
        ),
        (
            ["run", "a", "b"],
            "railgun run: the following arguments are required: --out; see railgun run --help",
        ),
    ],
)
def test_wrong_use(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr() == ("", message + "\n")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UsageError("a: b; c"), "railgun act: a: b; c"),
        (
            DefinitionError(("streams", "x"), "two\nlines", "hint", "f.toml"),
            "railgun act: f.toml: streams.x: two lines; hint",
        ),
        (
            FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "f"),
            "railgun act: f: No such file or directory; is the path right?",
        ),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            "railgun act: No space left on device; free space, then run it again",
        ),
        (KeyError("x"), "railgun act: a defect of this program (KeyError: 'x'); --debug shows where"),
        (MemoryError(), "railgun act: out of memory; close other programs, or lower the memory limits"),
    ],
)
def test_errors_are_one_line_on_stderr(
    error: Exception, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["act"], acting(raising(error))) == 2
    assert capsys.readouterr() == ("", message + "\n")


@pytest.mark.parametrize("words", [["--debug", "act"], ["act", "--debug"]])
def test_debug_shows_the_traceback_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words, acting(raising(UsageError("a: b")))) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith("\nrailgun act: a: b\n")


@pytest.mark.parametrize("code", [0, 1])
def test_the_exit_code_is_the_commands(code: int) -> None:
    assert main(["act"], acting(lambda: code)) == code


def test_an_interrupt_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["act"], acting(raising(KeyboardInterrupt()))) == 130
    assert capsys.readouterr() == ("", "railgun act: interrupted\n")


def test_sigterm_unwinds(capsys: pytest.CaptureFixture[str]) -> None:
    cleaned = []

    def action() -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        finally:
            cleaned.append(True)
        return 0

    before = signal.getsignal(signal.SIGTERM)
    assert main(["act"], acting(action)) == 128 + signal.SIGTERM
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) == before
    assert capsys.readouterr().err == "railgun act: terminated\n"


@pytest.mark.parametrize(("number", "told"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")])
def test_an_interrupt_that_a_library_lost_is_told_all_the_same(
    number: signal.Signals, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def action() -> int:
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        except KeyboardInterrupt:
            raise OSError("its connection is over too") from None
        return 0

    assert main(["act"], acting(action)) == 128 + number
    assert capsys.readouterr().err == f"railgun act: {told}\n"


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    queries = "".join(
        f"[[metrics]]\nsql = 'SELECT count(*) AS n{n} FROM s OVER SLIDING {n + 1} SECONDS'\n"
        for n in range(400)
    )
    (tmp_path / "d.toml").write_text(f'[streams.s.fields]\nx = "string"\n{queries}')
    command = [sys.executable, "-m", "railgun", "explain", str(tmp_path / "d.toml"), "--format", "json"]
    # Unbuffered, Python takes what a closed pipe refuses for written.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1) == b"{"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 128 + signal.SIGPIPE


def test_characters_that_the_terminal_lacks_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text('[streams.s.fields]\nx = "string"\n')
    result = subprocess.run(
        [sys.executable, "-m", "railgun", "explain", str(tmp_path / "d.toml")],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.startswith(b"stream s\n\\u2514\\u2500 ")


@pytest.mark.parametrize("name", ["run", "explain", "inspect"])
def test_the_module_is_the_command(name: str) -> None:
    command = [sys.executable, "-m", "railgun", name, "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, text=True)
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"usage: railgun {name}")


def test_an_interrupt_while_the_commands_are_loaded_is_told_in_one_line() -> None:
    program = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "railgun.cli.parser":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from railgun.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "railgun: interrupted\n")
    assert 'railgun = "railgun.__main__:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
