"""Starting, stopping and failing: what clients see meanwhile, what is kept, what the process says at its end."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from frontend.embedded.serving import open_engine
from frontend.http.pages import pages_of
from railgun.compiling import Compiling
from railgun.config.settings import EngineSettings
from railgun.engine import configured
from railgun.engine.engine import Engine
from railgun.engine.errors import FolderError
from railgun.messaging.errors import TransportIOError
from tests.frontend.conftest import PAYMENTS, Payments
from tests.frontend.raw_client import RawClient, chunked, head
from tests.frontend.serving import PATIENCE_S, server, until
from tests.frontend.serving_process import process

Event = Callable[..., dict[str, Any]]
EVENTS = "/v1/streams/payments/events"
ROOT = Path(__file__).parents[3]


# --- in this process -------------------------------------------------------------------------------


def test_the_port_answers_while_it_starts(tmp_path: Path, event: Event) -> None:
    may_open = threading.Event()

    def opening() -> Engine:
        assert may_open.wait(PATIENCE_S)
        engine = Engine(tmp_path / "data", durability="os")
        engine.apply(PAYMENTS)
        return engine

    with server(tmp_path / "data", open_engine=opening, wait=False) as running:
        assert running.client.get("/healthz").status_code == 200
        for response in (
            running.client.get("/readyz"),
            running.client.get("/v1/streams"),
            running.post(EVENTS, event()),
            running.client.post(EVENTS, content=b"{}\n", headers={"Content-Type": "application/x-ndjson"}),
        ):
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
            assert "starting" in response.json()["detail"]
        running.backend.running.is_doing("some work")
        assert running.client.get("/readyz").json()["detail"] == "starting: some work"
        may_open.set()
        until(lambda: running.client.get("/readyz").status_code == 200)
        assert running.score("payments", event())["metrics"]["n7"] == 1


def test_that_kernels_are_compiled_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And that is before the data is recovered, which needs them."""

    def opened(*arguments: Any) -> Engine:
        told.append("opened")
        return open_configured(*arguments)

    class Told(Compiling):
        def run(self) -> None:
            told.append("compiled apart")

    told, open_configured = list[str](), configured.open_engine
    monkeypatch.setattr("frontend.embedded.serving.is_image", lambda: False)
    monkeypatch.setattr("frontend.embedded.serving.load_all", lambda: told.append("compiled"))
    monkeypatch.setattr(configured, "open_engine", opened)
    settings = EngineSettings(data_folder=str(tmp_path / "data"), durability="os")
    open_engine(settings, None, told.append, Told()).close()
    assert told == [
        "kernels are being compiled, which takes a minute or a few, once",
        "compiled apart",
        "compiled",
        "opened",
    ]


def test_pages_asked_for_while_they_are_made_wait(
    payments: Payments, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events do not."""
    may_be_made, made = threading.Event(), list[object]()

    def slowly(*given: Any) -> FastAPI:
        made.append(given)
        assert may_be_made.wait(PATIENCE_S)
        return pages_of(*given)

    monkeypatch.setattr("frontend.http.pages.pages_of", slowly)
    with payments.serve() as running, ThreadPoolExecutor(2) as pool:
        pending = [pool.submit(running.client.get, "/v1/streams") for _ in range(2)]
        assert running.score("payments", event())["metrics"]["n7"] == 1
        assert not any(each.done() for each in pending)
        may_be_made.set()
        assert [each.result().status_code for each in pending] == [200, 200]
    assert len(made) == 1


def test_pages_that_cannot_be_made_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontend.http.pages.pages_of", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), server(tmp_path / "data", wait=False) as running:
        until(lambda: is_closed(running.address))


_WARNED_OF = """
import warnings
from frontend.http.pages import pages_of
from railgun.config.settings import HttpSettings
from tests.frontend.no_backend import NO_BACKEND
warnings.simplefilter = lambda *_, **__: None
pages_of(NO_BACKEND, HttpSettings(), {}, lambda *_: None)
"""


def test_what_another_thread_does_with_warnings_keeps_no_pages_from_being_made() -> None:
    """As where it puts back what there was while the framework hides some."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _WARNED_OF],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_in_flight_is_answered(payments: Payments, event: Event) -> None:
    sent = event()
    with ThreadPoolExecutor(1) as pool, payments.serve(shutdown_grace_s=30.0) as running:
        payments.gate.shut()
        held = pool.submit(running.score, "payments", sent)
        payments.gate.wait_for_event()
        running.service.stop()
        until(lambda: is_closed(running.address))
        payments.gate.open()
        assert held.result()["metrics"]["n7"] == 1
    with payments.serve() as running:
        assert running.score("payments", sent)["duplicate"] == ["card", "*"]


def test_what_is_not_answered_within_the_grace_is_told_so(payments: Payments, event: Event) -> None:
    with ThreadPoolExecutor(1) as pool, payments.serve() as running:
        payments.gate.shut()
        held = pool.submit(running.post, EVENTS, [event()])
        payments.gate.wait_for_event()
        running.service.stop()
        response = held.result()
        payments.gate.open()
    assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
    assert "events may count" in response.json()["detail"]
    assert "Retry-After" not in response.headers, "a client would send it again, and it would count twice"


def test_a_stream_of_lines_ends_with_the_server(payments: Payments, event: Event) -> None:
    with payments.serve() as running, RawClient(running.address) as client:
        client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
        client.send(chunked(json.dumps(event()).encode() + b"\n", end=False))
        assert client.head()[0] == 200
        assert json.loads(client.chunk())["metrics"]["n7"] == 1
        running.service.stop()
        assert client.chunk() == b""
        assert client.is_ended()


def is_closed(address: tuple[str, int]) -> bool:
    try:
        with RawClient(address):
            return False
    except OSError:
        return True


def test_an_engine_that_stops(payments: Payments, event: Event) -> None:
    """A log that cannot be written: clients are told, and the process ends with a failure."""
    kept = event()
    with payments.serve() as running:
        running.score("payments", kept)

        def failing(entries: object) -> "Future[list[int]]":
            future: Future[list[int]] = Future()
            future.set_exception(
                TransportIOError(str(payments.folder), "no space left on device", "Free space")
            )
            return future

        running.engine()._streams._log.submit = failing
        response = running.post(EVENTS, event())
        assert response.status_code == 503
        assert "no space left" in response.json()["detail"]
        assert "events may count" in response.json()["detail"]
        assert "Retry-After" not in response.headers, "a client would send it again, and it would count twice"
        until(lambda: running.code is not None)
        assert running.code == 1
    with payments.serve() as running:
        assert running.score("payments", kept)["duplicate"] == ["card", "*"]


def test_a_log_that_refuses_at_once_has_taken_nothing(
    payments: Payments, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine goes on, and a client may send its event again."""
    sent = event()
    with payments.serve() as running:

        def refusing(entries: object) -> "Future[list[int]]":
            raise TransportIOError(str(payments.folder), "too many open files", "Raise the limit")

        with monkeypatch.context() as patch:
            patch.setattr(running.engine()._streams._log, "submit", refusing)
            response = running.post(EVENTS, sent)
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert "may count" not in response.json()["detail"]
        reply = running.score("payments", sent)
        assert (reply["metrics"]["n7"], reply.get("duplicate")) == (1, None)


def test_what_brings_no_events_may_be_asked_again(
    payments: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    with payments.serve() as running:

        def failing(self: Engine) -> None:
            raise FolderError("data: too many open files")

        with monkeypatch.context() as patch:
            patch.setattr(Engine, "streams", failing)
            response = running.client.get("/v1/streams")
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert response.json()["detail"] == "data: too many open files"
        assert running.client.get("/v1/streams").status_code == 200


# --- a process of its own --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path: Path, event: Event, number: signal.Signals) -> None:
    with process(tmp_path / "data") as (child, client):
        for _ in range(3):
            assert client.post(EVENTS, json=event(card="c")).status_code == 200
        child.send_signal(number)
        assert child.wait(PATIENCE_S) == 0
    with Engine(tmp_path / "data") as engine:
        (stream,) = engine.status().streams
        # The checkpoint covers all: there is no log to read again.
        assert all(task.checkpoint == task.position for task in stream.tasks)
        assert engine.score("payments", event(card="c"))["metrics"]["n7"] == 4


def test_a_second_signal_ends_it_at_once(tmp_path: Path, event: Event) -> None:
    with process(tmp_path / "data") as (child, client):
        assert client.post(EVENTS, json=event(card="c")).status_code == 200
        host, port = str(client.base_url.host), client.base_url.port
        assert port is not None
        with RawClient((host, port)) as slow:
            # A request that does not come to its end keeps it waiting.
            slow.send(head(EVENTS, "application/json", "Content-Length: 100") + b"{")
            time.sleep(0.1)
            child.send_signal(signal.SIGTERM)
            until(lambda: is_closed((host, port)))
            child.send_signal(signal.SIGTERM)
            assert child.wait(PATIENCE_S) == 128 + signal.SIGTERM
    with Engine(tmp_path / "data") as engine:
        assert engine.score("payments", event(card="c"))["metrics"]["n7"] == 2


def test_a_folder_that_another_holds(tmp_path: Path) -> None:
    with Engine(tmp_path / "data"):
        command = [sys.executable, "-m", "railgun", "serve", "--data", str(tmp_path / "data")]
        done = subprocess.run(
            [*command, "--http", "127.0.0.1:0"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
        )
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("railgun serve: ")]
    assert len(lines) == 1
    assert str(tmp_path / "data") in lines[0]
