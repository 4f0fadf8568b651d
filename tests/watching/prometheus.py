"""A real Prometheus: Debian's, in a process of its own, and its tool."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from railgun.broker.held_ports import held_port, number_of

_STARTS_S, _STOPS_S = 100.0, 60.0


def program(name: str) -> str:
    """Return the path of `prometheus` or `promtool`. Without it the test is skipped; where CI=true it fails."""
    found = shutil.which(name)
    if found is None:
        missing = f"there is no {name}; install it (Debian: apt-get install prometheus), and it is run"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


class Prometheus:
    """A running one. url: where it answers."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=f"{url}/api/v1", trust_env=False, timeout=60)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Return what an expression gives now."""
        found: list[dict[str, Any]] = self._get("/query", query=expr)["result"]
        return found

    def has_series(self, selector: str) -> bool:
        """Return whether there was any series for a selector."""
        return bool(self._get("/series", **{"match[]": selector}))

    def targets(self) -> list[dict[str, Any]]:
        """Return what it scrapes, with health and last error."""
        found: list[dict[str, Any]] = self._get("/targets")["activeTargets"]
        return found

    def _get(self, path: str, **parameters: str) -> Any:
        answer = self._client.get(path, params=parameters).json()
        assert answer["status"] == "success", f"{parameters}: {answer}"
        return answer["data"]

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


@contextmanager
def prometheus(folder: Path, config: str) -> Iterator[Prometheus]:
    """One with this configuration, which names its files from `folder`."""
    file = folder / "prometheus.yml"
    file.write_text(config, encoding="utf-8")
    with held_port() as held:
        yield from _running(f"127.0.0.1:{number_of(held)}", folder, file)


def _running(address: str, folder: Path, file: Path) -> Iterator[Prometheus]:
    words = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'series'}"]
    words += [f"--web.listen-address={address}", "--log.level=warn"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([program("prometheus"), *words], stdout=log, stderr=log)
    try:
        _await_ready(process, f"http://{address}", folder / "prometheus.log")
        running = Prometheus(f"http://{address}")
        yield running
        running.close()
    finally:
        process.terminate()
        try:
            process.wait(_STOPS_S)
        finally:
            process.kill()


def _await_ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + _STARTS_S
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline
        try:
            if httpx.get(f"{url}/-/ready", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
