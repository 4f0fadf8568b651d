"""Runs `railgun` commands as child processes of the demo, and ends them in every case. One kind is a server."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from railgun.child_python import child_python
from railgun.client.client import Client
from railgun.client.errors import ClientError
from railgun.config.settings import ENVIRONMENT_PREFIX

START_LIMIT_S, STOP_LIMIT_S = 180.0, 60.0
_POLL_S = 0.05
_KEPT_LINES = 20


class ServerError(Exception):
    """A process did not start, or ended by itself. The message has the last lines of its log."""


class Child:
    """A `railgun` command as a child process.

    It has a session of its own, so Ctrl-C reaches only the demo, which stops it.

    words: the command and its arguments.
    settings: its settings, as environment variables. Settings of the demo's own environment are not passed on. The log
    is JSON unless these say otherwise.
    name: its name in errors.
    """

    def __init__(self, *words: str, settings: Mapping[str, str] | None = None, name: str = "") -> None:
        self.name = name or f"railgun {words[0]}"
        self._words, self._settings = words, settings or {}
        self._output: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the process. It can be started again after it has ended."""
        inherited = {name: value for name, value in os.environ.items() if not _is_setting(name)}
        self._process = subprocess.Popen(
            child_python("-m", "railgun", *self._words),
            env={**inherited, "RAILGUN_LOGGING__FORMAT": "json", **self._settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name=f"log of {self.name}", daemon=True)
        self._reader.start()

    @property
    def output(self) -> list[str]:
        """The last lines of the process's log."""
        return list(self._output)

    def stop(self) -> None:
        """Ask the process to stop, as an operator would, and wait for its end.

        Raises ServerError if it does not end well.
        """
        self.check()
        process = self._running()
        process.terminate()
        try:
            code = process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise ServerError(
                f"asked to stop, {self.name} was still there {STOP_LIMIT_S:g} s later"
            ) from None
        if code:
            raise ServerError(f"{self.name} ended with exit code {code} when it was asked to stop")

    def kill(self) -> None:
        """End the process and its own children at once, as a loss of power would."""
        process = self._running()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._close()

    def check(self) -> None:
        """Raise ServerError if the process has ended."""
        code = self._running().poll()
        if code is not None:
            self._reader.join()
            raise ServerError(f"{self.name} ended with exit code {code}: {' | '.join(self._output)}")

    def end(self) -> None:
        """Stop the process; kill it if it does not stop."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_LIMIT_S)
            except BaseException:
                self.kill()
                raise
        self._close()

    def hear(self, line: str) -> None:
        """Take a line of the process's log. Subclasses override this."""

    def _running(self) -> "subprocess.Popen[str]":
        assert self._process is not None, "it was not started"
        return self._process

    def _close(self) -> None:
        self._reader.join()
        stderr = self._running().stderr
        if stderr is not None:
            stderr.close()

    def _read(self) -> None:
        """Read the process's log, so that the process never waits for a reader."""
        stderr = self._running().stderr
        assert stderr is not None
        for line in stderr:
            self._output.append(line.strip())
            self.hear(line)


class Server(Child):
    """A child process that answers HTTP on a free port. Inside its `with` block it answers at `url`."""

    def __init__(self, *words: str, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(*words, "--http", "127.0.0.1:0", settings=settings)
        self._listening = threading.Event()
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        try:
            self._wait_until_ready()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def hear(self, line: str) -> None:
        if not self.url:
            self.url = _url_of(line)
            if self.url:
                self._listening.set()

    def _wait_until_ready(self) -> None:
        deadline_s = time.monotonic() + START_LIMIT_S
        while not self._listening.wait(_POLL_S):
            self._check(deadline_s)
        with Client(self.url) as client:
            while not self._is_ready(client):
                self._check(deadline_s)
                time.sleep(_POLL_S)

    @staticmethod
    def _is_ready(client: Client) -> bool:
        try:
            return client.is_ready()
        except ClientError:
            return False

    def _check(self, deadline_s: float) -> None:
        self.check()
        if time.monotonic() > deadline_s:
            raise ServerError(
                f"{self.name} was not ready after {START_LIMIT_S:g} s: {' | '.join(self.output)}"
            )


def _is_setting(variable: str) -> bool:
    return variable.startswith(ENVIRONMENT_PREFIX) and "__" in variable


def _url_of(line: str) -> str:
    try:
        output = json.loads(line)
    except ValueError:
        return ""
    return str(output.get("url") or "") if isinstance(output, dict) else ""
