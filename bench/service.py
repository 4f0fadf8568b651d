"""Runs `railgun serve` as a process on a free port of this machine, for as long as a bench needs it."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from bench.children import TREE, ChildFailedError, environment_of
from bench.process import cpu_s

_READY_SECONDS, _STOP_SECONDS = 600.0, 120.0
_POLL_S = 0.01
_SHOWN_BYTES = 2_000
_STARTER = TREE / "bench" / "named_threads.py"

SERVED_TREE = "BENCH_SERVED_TREE"
"""The environment variable with the folder of the tree whose server is measured, where that is not this tree."""


def served_tree() -> Path:
    """Return the tree whose server is measured."""
    return Path(os.environ.get(SERVED_TREE, TREE))


class Service:
    """Started by `start` over `folder`, as often as is wanted; `stop` and `kill` end it.

    definitions: TOML of streams and metrics, created where missing.  durability: "os" or "fsync".  broker: its log is
    Kafka there, its topics begin with `prefix`, and a node of one unit runs beside it.  role: "serve", or "frontend"
    for a front-end without a node.  environment: more settings.  ca: file with its CA, where it speaks TLS.
    """

    def __init__(
        self,
        folder: Path,
        definitions: str,
        durability: str,
        broker: str | None = None,
        prefix: str = "railgun",
        role: str = "serve",
        environment: Mapping[str, str] | None = None,
        ca: str | None = None,
    ) -> None:
        self._folder, self._broker, self._role = folder, broker, role
        self._settings = {
            "RAILGUN_ENGINE__DURABILITY": durability,
            "RAILGUN_CLUSTER__TOPIC_PREFIX": prefix,
            "RAILGUN_CLUSTER__UNITS": "1",
            **(environment or {}),
        }
        self.ca = ca
        self._definitions = folder / "definitions.toml"
        self._definitions.write_text(definitions, encoding="utf-8")
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.host, self.port = "127.0.0.1", 0
        # Its port is nobody else's until the block ends, also while the process is started again.
        self._held: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.kill()
        finally:
            if self._held is not None:
                self._held.close()

    @property
    def pid(self) -> int:
        """The id of the process that runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def unit_pids(self) -> list[int]:
        """The process ids of the units beside it. Raises ChildFailedError if there is none."""
        children = psutil.Process(self.pid).children(recursive=True)
        if found := [int(child.pid) for child in children if "railgun.unit" in child.cmdline()]:
            return found
        raise ChildFailedError("railgun serve --broker: there is no unit")

    @property
    def unit_pid(self) -> int:
        """The process id of the first unit beside it. Raises ChildFailedError if there is none."""
        return self.unit_pids[0]

    def cpu_s(self) -> float:
        """Return the CPU time of the process, over all threads, in seconds."""
        return cpu_s(self.pid)

    def start(self, tree: Path | None = None) -> float:
        """Start the process. Returns the seconds until it is ready, with Python's start. Raises ChildFailedError.

        tree: whose modules it runs (by default those of `served_tree`).
        """
        tree = tree or served_tree()
        if self._held is None:
            self._held = _held_port(self.host)
            self.port = int(self._held.getsockname()[1])
        command = [sys.executable, "-P", str(_STARTER), self._role]
        command += ["--data", str(self._folder / "data")] if self._role == "serve" else []
        command += ["--http", f"{self.host}:{self.port}", "--definitions", str(self._definitions)]
        command += [] if self._broker is None else ["--broker", self._broker]
        begun_s = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env={**environment_of(tree), **self._settings},
                cwd=tree,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        while time.perf_counter() - begun_s < _READY_SECONDS:
            if self._process.poll() is not None:
                raise ChildFailedError(f"railgun serve: code {self._process.returncode}: {self._said()}")
            if self._is_ready():
                return time.perf_counter() - begun_s
            time.sleep(_POLL_S)
        raise ChildFailedError(f"railgun serve: not ready within {_READY_SECONDS:g} s: {self._said()}")

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and return the answer's JSON. Raises ChildFailedError if its status is no success."""
        connection = self._connection(60)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"content-type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise ChildFailedError(f"{method} {path}: {answer.status}: {said[:_SHOWN_BYTES].decode()}")
        return json.loads(said) if said else None

    def stop(self) -> None:
        """End the process as an operator would. Raises ChildFailedError if it does not end well."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ChildFailedError(f"railgun serve: still there {_STOP_SECONDS:g} s after SIGTERM") from None
        self._process = None
        if code:
            raise ChildFailedError(f"railgun serve: code {code}: {self._said()}")

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_ready(self) -> bool:
        connection = self._connection(10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if self.ca is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=context)

    def _said(self) -> str:
        return self._log.read_bytes()[-_SHOWN_BYTES:].decode(errors="replace").strip()


def _held_port(host: str) -> socket.socket:
    """Return a socket with a free port that nobody else is given, and at which a server can listen all the same.

    As `railgun.broker.held_ports`: a comparison serves an older tree, and imports nothing of the engine here.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((host, 0))
    return held
