"""A server of the demo's own: `railgun serve` as a child process on a free port, ended in every case."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from railgun.client.client import Client
from railgun.client.errors import ClientError
from railgun.config.settings import ENVIRONMENT_PREFIX

START_LIMIT_S, STOP_LIMIT_S = 180.0, 60.0
_POLL_S = 0.05
_KEPT_LINES = 20


class ServerError(Exception):
    """The server did not start, or went away; the message has the last that it said."""


class Server:
    """Use as a context manager: inside it answers at `url`. Leaving it stops the process, whatever happens.

    arguments: further ones of `railgun serve`.  It has a session of its own: Ctrl-C on the terminal reaches us alone,
    who then stop it.
    """

    def __init__(self, data: Path, *arguments: str) -> None:
        self._arguments = ("--data", str(data), "--http", "127.0.0.1:0", *arguments)
        self._output: deque[str] = deque(maxlen=_KEPT_LINES)
        self._listening = threading.Event()
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "railgun", "serve", *self._arguments]
        # Settings of ours are not the server's.
        inherited = {name: value for name, value in os.environ.items() if not _is_setting(name)}
        self._process = subprocess.Popen(
            command,
            env={**inherited, "RAILGUN_LOGGING__FORMAT": "json"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name="server's log", daemon=True)
        self._reader.start()
        try:
            self._wait_until_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def output(self) -> list[str]:
        """The last lines of its log."""
        return list(self._output)

    def stop(self) -> int:
        """Ask it to stop, as an operator would, and wait: its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise ServerError(f"asked to stop, it was still there {STOP_LIMIT_S:g} s later") from None

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
        if self._process.poll() is not None:
            self._reader.join()
            raise ServerError(
                f"railgun serve ended with exit code {self._process.returncode}: {' | '.join(self._output)}"
            )
        if time.monotonic() > deadline_s:
            raise ServerError(
                f"railgun serve was not ready after {START_LIMIT_S:g} s: {' | '.join(self._output)}"
            )

    def _read(self) -> None:
        """Take what it says, so that it never waits for us; among it the address it listens at."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._output.append(line.strip())
            if not self.url:
                self.url = _url_of(line)
                if self.url:
                    self._listening.set()

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_LIMIT_S)
            except BaseException:
                self._process.kill()
                self._process.wait()
                raise
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()


def _is_setting(variable: str) -> bool:
    return variable.startswith(ENVIRONMENT_PREFIX) and "__" in variable


def _url_of(line: str) -> str:
    try:
        output = json.loads(line)
    except ValueError:
        return ""
    return str(output.get("url") or "") if isinstance(output, dict) else ""
