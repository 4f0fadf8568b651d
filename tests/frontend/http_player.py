"""A stream behind a real HTTP server, as the oracle's steps see it: every step is a request."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from railgun.catalog.changes import Warm
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.stream_reading import definition_to_json
from railgun.engine.engine import Engine
from railgun.task.settings import TaskSettings
from tests.engine.player import as_reply
from tests.frontend.serving import Server, server, until
from tests.oracle.steps import Reply

_NO_CLOCK_MS = 2**63
_NDJSON = {"Content-Type": "application/x-ndjson"}


class RefusedOverHttp(Exception):
    """The server refused a request: with a problem."""


class HttpRequests(ABC):
    """Steps on `stream` as requests."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.clock_ms: int | None = None
        self.queries = 0

    @property
    @abstractmethod
    def client(self) -> httpx.Client:
        """Of the server that gets the next request."""

    @abstractmethod
    def add_metrics(self, sql: str, *, warm: bool = True) -> object: ...

    @abstractmethod
    def warm(self, name: str) -> None: ...

    @abstractmethod
    def restart(self, *, crash: bool) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @property
    def place(self) -> str:
        return f"/v1/streams/{self.stream}"

    def apply(self, definitions: str) -> None:
        read = parse_definitions(definitions)
        for stream in read.streams.values():
            self._pending("POST", "/v1/streams", definition_to_json(stream))
        for metric in (*read.metrics, *read.derived):
            self._pending("POST", f"/v1/streams/{metric.stream}/metrics", {"sql": metric.sql})
        self._wait_until_warm()

    def score(self, event: Mapping[str, Any]) -> Reply:
        return dict(self._pending("POST", f"{self.place}/events", event))

    def score_array(self, events: Sequence[Mapping[str, Any]]) -> list[Reply]:
        return list(self._pending("POST", f"{self.place}/events", list(events)))

    def score_lines(self, events: Sequence[Mapping[str, Any]]) -> list[Reply]:
        body = "".join(json.dumps(event) + "\n" for event in events).encode()
        response = self.client.post(f"{self.place}/events", content=body, headers=_NDJSON)
        assert response.status_code == 200, response.text
        return [json.loads(line) for line in response.content.splitlines()]

    def values(self, key: Mapping[str, Any], names: Sequence[str] | None = None) -> Reply:
        """Now and then by GET where all values of the key are texts, else by POST."""
        self.queries += 1
        if self.queries % 2 and all(isinstance(value, str) for value in key.values()):
            query = urlencode(dict(key) | ({} if names is None else {"metrics": ",".join(names)}))
            return as_reply(self._pending("GET", f"{self.place}/values?{query}"))
        body = {"keys": [key]} | ({} if names is None else {"metrics": list(names)})
        (found,) = self._pending("POST", f"{self.place}/values", body)
        return as_reply(found)

    def drop_metric(self, name: str) -> None:
        self._pending("DELETE", f"{self.place}/metrics/{name}")

    def add_field(self, name: str, declared: Any) -> None:
        self._pending("PATCH", self.place, {"fields": {name: declared}})

    def place_field(self, name: str, declared: Any) -> None:
        self.add_field(name, declared)

    def drop_field(self, name: str) -> None:
        self._pending("PATCH", self.place, {"fields": {name: None}})

    def set_lateness(self, duration: str) -> None:
        self._pending("PATCH", self.place, {"lateness": duration})

    def set_retention(self, duration: str) -> None:
        self._pending("PATCH", self.place, {"retention": duration})

    def set_clock(self, clock_ms: int) -> None:
        self.clock_ms = clock_ms

    def _wait_until_warm(self) -> None:
        until(lambda: not self._warming())

    def _warming(self) -> list[str]:
        metrics = self._pending("GET", f"{self.place}/metrics")["metrics"]
        return [each["name"] for each in metrics if each["warming"] and each["home"] is not None]

    def _pending(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        response = self.client.request(method, path, content=content, headers=headers)
        if response.status_code == httpx.codes.NO_CONTENT:
            return None
        if response.is_success:
            return json.loads(response.content)
        assert response.status_code < 500, response.text
        assert response.headers["content-type"] == "application/problem+json"
        raise RefusedOverHttp(response.json()["detail"])


class HttpPlayer(HttpRequests):
    """Plays steps on `stream` of a server over an engine in a folder."""

    def __init__(self, folder: Path, stream: str, settings: TaskSettings | None = None) -> None:
        super().__init__(stream)
        self.folder, self._settings = folder, settings
        self._held: set[str] = set()
        self._holds_all = False
        self._stack = ExitStack()
        self.server = self._open()

    @property
    def client(self) -> httpx.Client:
        return self.server.client

    def _open(self) -> Server:
        return self._stack.enter_context(server(self.folder, open_engine=self._engine))

    def _engine(self) -> Engine:
        return Engine(
            self.folder,
            durability="os",
            settings=self._settings,
            now_ms=lambda: _NO_CLOCK_MS if self.clock_ms is None else self.clock_ms,
            may_warm=lambda warm: self._may_warm(warm),
        )

    def _may_warm(self, warm: Warm) -> bool:
        return not self._holds_all and warm.name not in self._held

    def add_metrics(self, sql: str, *, warm: bool = True) -> object:
        self._holds_all = not warm
        try:
            made = self._pending("POST", f"{self.place}/metrics", {"sql": sql})["metrics"]
            if not warm:
                self._held.update(metric["name"] for metric in made)
        finally:
            self._holds_all = False
        if warm:
            self._wait_until_warm()
        return made

    def warm(self, name: str) -> None:
        self._held.discard(name)
        self._wait_until_warm()

    def restart(self, *, crash: bool) -> None:
        """Begin anew on the same data; after a crash without the checkpoint that stopping takes."""
        if crash:
            self.server.engine().close(checkpoint=False)
        self._stack.close()
        self.server = self._open()

    def close(self) -> None:
        self._stack.close()

    def _wait_until_warm(self) -> None:
        self.server.engine().wait_until_warm(self.stream)
        until(lambda: self._held.issuperset(self._warming()))
