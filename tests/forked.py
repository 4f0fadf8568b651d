"""Programs of the tree as processes that begin at once: forked from one that has loaded everything.

A Python that loads the engine takes a second of processor time; a fork takes some milliseconds, and is killed, stopped,
and asked to end like any other process. Each worker of a run has one process that forks: of a single thread, as what is
forked of several may find locks that nobody will let go. What it cannot show is how a program loads: that is for the
tests that start Python itself.
"""

import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Self

from tests.proc import of_threads

ROOT = Path(__file__).parents[1]
_MESSAGE_BYTES = 1 << 18
_STREAMS = 3
_RUNS_S = 120.0
# The one that Arrow's memory comes with; jemalloc has another one started where it is forked.
_ITSELF, _OF_JEMALLOC = Path("/proc/self/comm").read_text(encoding="utf-8").strip(), "jemalloc_bg_thd"
_LOADED = (
    "frontend.kafka.serving",
    "frontend.embedded.serving",
    "railgun.cli.main",
    "railgun.client.client",
    "railgun.cli.server_url",
    "railgun.engine.engine",
    "railgun.node.ending",
    "railgun.unit.process",
    "tests.cli.fake_run",
)


class Forked:
    """A module run as `python -m` would, with a part of `subprocess.Popen`'s names.

    stdin, stdout, stderr: as there.  env: the whole environment, but for what Python itself reads at its start.
    """

    def __init__(
        self,
        module: str,
        words: Sequence[str | Path],
        *,
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[Any] | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        text: bool = False,
    ) -> None:
        self.returncode: int | None = None
        self._text = text
        with ExitStack() as stack:
            theirs: list[int] = []
            ours: list[IO[Any] | None] = []
            for number, asked in enumerate((stdin, stdout, stderr)):
                their, our = self._stream(number, asked)
                if their != number:
                    stack.callback(os.close, their)
                theirs.append(their)
                ours.append(our)
            self.stdin, self.stdout, self.stderr = ours
            said = {
                "module": module,
                "words": [str(word) for word in words],
                "cwd": str(cwd),
                "env": dict(os.environ if env is None else env),
            }
            # The process stays, if only by its number, until this end is closed.
            self._life, life = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.callback(life.close)
            socket.send_fds(_forker(), [json.dumps(said).encode()], [*theirs, life.fileno()])
        told = self._life.recv(16)
        assert told, "the process that forks has ended; it prints why"
        self.pid = int(told)

    def _stream(self, number: int, asked: int | IO[Any] | None) -> tuple[int, IO[Any] | None]:
        """The end that the process is given, and ours."""
        if asked is None:
            return number, None
        if not isinstance(asked, int):
            return os.dup(asked.fileno()), None
        if asked == subprocess.DEVNULL:
            return os.open(os.devnull, os.O_RDWR), None
        assert asked == subprocess.PIPE
        read, written = os.pipe()
        their, our, mode = (read, written, "wb") if number == 0 else (written, read, "rb")
        raw: IO[bytes] = os.fdopen(our, mode)
        return their, io.TextIOWrapper(raw, encoding="utf-8") if self._text else raw  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self.wait()
        finally:
            self._close()

    def __del__(self) -> None:
        if self._life.fileno() >= 0:
            self._life.close()

    def poll(self) -> int | None:
        """How it ended, if it has."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has. Raises TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def _ended(self, wait_s: float | None) -> int | None:
        if self.returncode is None:
            if not select.select([self._life], [], [], wait_s)[0]:
                return None
            self.returncode = int(self._life.recv(16))
            self._life.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self) -> tuple[Any, Any]:
        """What it still says on stdout and stderr, of which it says little on one; returns once it has ended."""
        said = []
        if self.stdin is not None and not self.stdin.closed:
            with suppress(BrokenPipeError):
                self.stdin.close()
        for stream in (self.stdout, self.stderr):
            said.append(None if stream is None or stream.closed else stream.read())
        self.wait()
        self._close()
        return said[0], said[1]

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def run(
    module: str, words: Sequence[str | Path], *, sent: str = "", env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a module to its end, with so much to read: how it ended, and what it said."""
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(_STREAMS)]
        files[0].write(sent)
        files[0].seek(0)
        stdin, stdout, stderr = files
        process = Forked(module, words, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            code = process.wait(_RUNS_S)
        finally:
            process.kill()
        said = []
        for each in files[1:]:
            each.seek(0)
            said.append(each.read())
    return subprocess.CompletedProcess([module, *map(str, words)], code, *said)


@cache
def _forker() -> socket.socket:
    """What is asked to fork; the process behind it ends when this one has."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Numerical libraries have threads of their own otherwise.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with theirs:
        command = [sys.executable, "-m", "tests.forked", str(theirs.fileno())]
        _processes.append(
            subprocess.Popen(
                command, cwd=ROOT, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        )
    return ours


_processes: list["subprocess.Popen[bytes]"] = []


# --- the process that forks ------------------------------------------------------------------------


def _next_life(asked: socket.socket) -> dict[str, Any] | None:
    """Fork whenever it is asked for. Returns in the processes that are forked, with what they are to be, and at last,
    with nothing, in this one."""
    while True:
        message, streams, _, _ = socket.recv_fds(asked, _MESSAGE_BYTES, _STREAMS + 1)
        if not message:
            return None
        assert set(_threads()) <= {_ITSELF, _OF_JEMALLOC}, list(_threads())
        if os.fork() == 0:
            # Of this one nobody asks how it ended: it waits for the process proper.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asked.close()
            life = socket.socket(fileno=streams.pop())
            child = os.fork()
            if child == 0:
                life.close()
                for number, each in enumerate(streams):
                    os.dup2(each, number)
                    os.close(each)
                said: dict[str, Any] = json.loads(message)
                return said
            _wait(child, life)
        for each in streams:
            os.close(each)


def _threads() -> Iterator[str]:
    for name in of_threads(os.getpid(), "comm"):
        yield name.strip()


def _wait(child: int, life: socket.socket) -> None:
    """Say its number, and how it ended, and keep that number for as long as it may be asked after; ends the process."""
    for number in range(_STREAMS):
        os.close(number)
    os.closerange(life.fileno() + 1, 1 << 10)
    os.closerange(_STREAMS, life.fileno())
    with suppress(OSError):
        life.send(str(child).encode())
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        life.send(str(code).encode())
        life.recv(1)
    os._exit(0)


def _be(said: dict[str, Any]) -> None:
    """Run a module as the process that was asked for."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(said["env"])
    os.chdir(said["cwd"])
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    sys.argv = [said["module"], *said["words"]]
    gc.enable()
    runpy.run_module(said["module"], run_name="__main__", alter_sys=True)


def _main() -> None:
    # An interrupt that is typed at the terminal is for the run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asked = socket.socket(fileno=int(sys.argv[1]))
    gc.disable()
    for name in _LOADED:
        importlib.import_module(name)
    gc.freeze()
    said = _next_life(asked)
    if said is not None:
        _be(said)


if __name__ == "__main__":
    _main()
