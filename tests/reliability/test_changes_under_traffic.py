"""Metrics added and dropped during traffic, embedded and over HTTP: every reply is the oracle's, bit for bit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from railgun.engine.errors import EngineStoppedError
from tests.engine.player import SMALLEST, EnginePlayer
from tests.frontend.http_player import HttpPlayer
from tests.oracle.steps import Reply
from tests.reliability.changing import DEFINITIONS, STREAM, Cut, run


class Embedded:
    """A real engine."""

    def __init__(self, folder: Path, *, tiny: bool) -> None:
        self._player = EnginePlayer(folder, STREAM, SMALLEST if tiny else None)
        self._player.apply(DEFINITIONS)

    def score(self, events: Sequence[dict[str, Any]]) -> list[Reply]:
        return self._player.engine.score_many(STREAM, events)

    def add(self, sql: str) -> None:
        try:
            self._player.engine.add_metrics(STREAM, sql, wait=False)
        except EngineStoppedError as error:
            raise Cut from error

    def drop(self, name: str) -> None:
        try:
            self._player.engine.drop_metric(STREAM, name)
        except EngineStoppedError as error:
            raise Cut from error

    def names(self) -> list[str]:
        return [metric.name for metric in self._player.engine.metrics(STREAM)]

    def crash(self) -> None:
        self._player.restart(crash=True)

    def close(self) -> None:
        self._player.close()


class OverHttp:
    """A real server; every event and every change is a request."""

    def __init__(self, folder: Path, *, tiny: bool) -> None:
        self._player = HttpPlayer(folder, STREAM, SMALLEST if tiny else None)
        self._player.apply(DEFINITIONS)

    def score(self, events: Sequence[dict[str, Any]]) -> list[Reply]:
        return [self._player.score(events[0])] if len(events) == 1 else self._player.score_array(events)

    def add(self, sql: str) -> None:
        self._asked("POST", "metrics", json={"sql": sql})

    def drop(self, name: str) -> None:
        self._asked("DELETE", f"metrics/{name}")

    def names(self) -> list[str]:
        found = self._player.client.get(f"{self._player.place}/metrics").json()["metrics"]
        return [each["name"] for each in found]

    def crash(self) -> None:
        self._player.restart(crash=True)

    def close(self) -> None:
        self._player.close()

    def _asked(self, method: str, path: str, **body: Any) -> None:
        try:
            response = self._player.client.request(method, f"{self._player.place}/{path}", **body)
        except (httpx.TransportError, RuntimeError) as error:  # RuntimeError: the client was closed meanwhile
            raise Cut from error
        if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            raise Cut
        assert response.is_success, response.text


SUBJECTS = {"embedded": Embedded, "http": OverHttp}


def changed(kind: str, seed: int, changes: int, folder: Path, *, crash_every: int = 0) -> list[str]:
    subject = SUBJECTS[kind](folder / "data", tiny=seed % 3 != 0)
    try:
        return run(seed, changes, subject, crash_every=crash_every)
    finally:
        subject.close()


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("seed", range(3))
def test_changes(kind: str, seed: int, tmp_path: Path) -> None:
    assert changed(kind, seed, 25, tmp_path) == []


@pytest.mark.parametrize("kind", SUBJECTS)
def test_changes_that_crashes_cut_off(kind: str, tmp_path: Path) -> None:
    assert changed(kind, 10, 25, tmp_path, crash_every=9) == []


@pytest.mark.torture
@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_thousand_changes(kind: str, seed: int, tmp_path: Path) -> None:
    """Fifty each, so that the oracle's logs stay short."""
    assert changed(kind, seed, 50, tmp_path, crash_every=seed % 2 * 25) == []
