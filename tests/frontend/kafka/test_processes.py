"""`railgun serve --broker` and `railgun frontend` as processes: from nothing to answers, killed and stopped."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontend.exchange.exchange import Limits
from railgun.broker.held_ports import held_port, number_of
from tests.client.relay import bound, leading_to
from tests.forked import Forked
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.serving import until
from tests.halting import halt
from tests.proc import children, runs, units

ROOT = Path(__file__).parents[3]
EVENTS = "/v1/streams/payments/events"
Event = Callable[..., dict[str, Any]]
# Every process loads its kernels first, on machines that have other things to do.
_STARTS_S, _STOPS_S = 200.0, 100.0
_ARRAYS = Limits().events // 10_000


@contextmanager
def _running(*words: str, prefix: str) -> Iterator[tuple[Forked, httpx.Client]]:
    with held_port() as held:
        yield from _running_at(number_of(held), words, prefix)


def _running_at(port: int, words: Sequence[str], prefix: str) -> Iterator[tuple[Forked, httpx.Client]]:
    own = {name: value for name, value in os.environ.items() if "__" not in name}
    environment = {**own, "RAILGUN_CLUSTER__TOPIC_PREFIX": prefix, "RAILGUN_CLUSTER__UNITS": "1"}
    process = Forked("railgun", [*words, "--http", f"127.0.0.1:{port}"], env=environment)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=_STARTS_S, trust_env=False) as client:
            _await_ready(process, client)
            yield process, client
    finally:
        process.terminate()
        try:
            process.wait(_STOPS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(process: Forked, client: httpx.Client) -> None:
    deadline = time.monotonic() + _STARTS_S
    while True:
        assert process.poll() is None
        assert time.monotonic() < deadline
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)


@contextmanager
def _serving(folder: Path, *options: str) -> Iterator[tuple[Forked, httpx.Client]]:
    """A server with a node of its own, in a folder whose name its topics begin with."""
    words = ("serve", *options, "--data", str(folder / "data"), "--definitions", _definitions(folder))
    with _running(*words, prefix=folder.name) as running:
        yield running


def _definitions(folder: Path) -> str:
    definitions = folder / "d.toml"
    definitions.write_text(PAYMENTS)
    return str(definitions)


@pytest.mark.parametrize("comes", [False, True])
def test_a_broker_that_is_away_is_waited_for(kafka: str, tmp_path: Path, comes: bool) -> None:
    """The front-end says so at once, takes up its work when the broker comes, and may be stopped in either case."""
    with bound() as address, held_port() as held, ExitStack() as stack:
        port, http_port = address.getsockname()[1], number_of(held)
        command = [sys.executable, "-m", "railgun", "frontend", "--broker", f"127.0.0.1:{port}"]
        command += ["--http", f"127.0.0.1:{http_port}"]
        environment = {**os.environ, "RAILGUN_CLUSTER__TOPIC_PREFIX": tmp_path.name}
        process = stack.enter_context(
            subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
        )
        try:
            said = f"waiting for the broker, which is asked again: 127.0.0.1:{port}: "
            until(lambda: said in _readiness(http_port))
            if comes:
                stack.enter_context(leading_to(kafka, address))
                until(lambda: '"ready"' in _readiness(http_port))
            process.send_signal(signal.SIGTERM)
            assert process.wait(_STOPS_S) == 0
            assert process.stderr is not None
            logged = process.stderr.read().decode()
            assert said in logged
            assert "Connection refused" in logged
        finally:
            process.kill()


def _readiness(port: int) -> str:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).text
    except httpx.TransportError:
        return ""


def test_serve_on_kafka(kafka: str, tmp_path: Path, event: Event) -> None:
    """A front-end and a node in one process tree: from definitions to answers, and a clean end of both."""
    with _serving(tmp_path, "--broker", kafka) as (process, client):
        sent = event()
        response = client.post(f"{EVENTS}?timeout_ms=200000", json=sent)
        assert response.status_code == 200, response.text
        assert response.json()["metrics"]["n7"] == 1
        # Units say how they stand now and then, not with every reply.
        until(lambda: _states(client) == {"running"})
        until(lambda: client.get("/v1/status").json()["cluster"]["lag"] == 0)
        glance = client.get("/v1/status").json()["cluster"]
        assert [node["units"] for node in glance["nodes"]] == [[0]]
        assert set(glance["tasks"]) == {"running"}
        assert (glance["lag"], glance["pending_events"], glance["unreadable_records"]) == (0, 0, 0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(_STOPS_S) == 0


def test_a_server_that_is_killed_takes_its_node_with_it(kafka: str, tmp_path: Path, event: Event) -> None:
    """As the settings say that it serves on Kafka."""
    settings = tmp_path / "railgun.toml"
    settings.write_text(f'[engine]\ntransport = "kafka"\n[cluster]\nbroker = "{kafka}"\n')
    with _serving(tmp_path, "--config", str(settings)) as (process, client):
        assert client.post(f"{EVENTS}?timeout_ms=200000", json=event()).status_code == 200
        (node,) = children(process.pid)
        (unit,) = units(node)
        process.kill()
        until(lambda: not runs(node) and not runs(unit))


def test_a_unit_that_is_stopped_makes_503s_and_no_memory(kafka: str, tmp_path: Path, event: Event) -> None:
    with _serving(tmp_path, "--broker", kafka) as (process, client):
        assert client.post(f"{EVENTS}?timeout_ms=200000", json=event()).status_code == 200
        (unit,) = [unit for node in children(process.pid) for unit in units(node)]
        with ThreadPoolExecutor(_ARRAYS) as pool:
            halt(unit)
            try:
                arrays = [[event() for _ in range(10_000)] for _ in range(_ARRAYS)]
                under_way = [
                    pool.submit(client.post, f"{EVENTS}?timeout_ms=200000", json=each) for each in arrays
                ]
                until(lambda: _gauge(client, "railgun_pending_events") == Limits().events)
                body = json.dumps(arrays[0][:2_000]).encode()
                # The allocator keeps some 40 MB for what is read and refused; only then is growth a leak.
                _refused(client, body, times=300)
                before = _gauge(client, "process_resident_memory_bytes")
                _refused(client, body, times=500)
                assert 500 * len(body) > 64 << 20, "kept, the bodies alone would have to show"
                assert _gauge(client, "process_resident_memory_bytes") < before + (32 << 20)
            finally:
                os.kill(unit, signal.SIGCONT)
            answers = [each.result().json() for each in under_way]
        everyone = [reply["metrics"]["everyone"] for each in answers for reply in each]
        assert sorted(everyone) == list(range(2, 2 + _ARRAYS * 10_000))
        assert _gauge(client, "railgun_pending_events") == 0


def _refused(client: httpx.Client, body: bytes, times: int) -> None:
    for _ in range(times):
        refused = client.post(EVENTS, content=body, headers={"content-type": "application/json"})
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"


def _states(client: httpx.Client) -> set[str]:
    (stream,) = client.get("/v1/status").json()["streams"]
    return {each["state"] for each in stream["tasks"]}


def _gauge(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))


def test_a_front_end_that_is_killed(kafka: str, tmp_path: Path, event: Event) -> None:
    """What it had not answered is sent again, to another one, and counts once."""
    with LocalCluster(kafka, tmp_path / "node") as cluster:
        cluster.start_units(1)
        words = ("frontend", "--broker", kafka, "--definitions", _definitions(tmp_path))
        sent = [event(card="killed") for _ in range(2_000)]
        answered: dict[str, int] = {}
        with _running(*words, prefix=cluster.prefix) as (process, client):
            for first in range(0, 1_000, 10):
                for reply in client.post(EVENTS, json=sent[first : first + 10]).json():
                    answered[reply["id"]] = reply["metrics"]["n7"]
            assert client.post(f"{EVENTS}?reply=none", json=sent[1_000:1_500]).status_code == 202
            process.kill()
            process.wait()
        other = cluster.serve()
        unanswered = [each for each in sent if each["tx_id"] not in answered]
        replies = other.post(EVENTS, unanswered).json()
        assert len(replies) == len(unanswered)
        again = [reply for reply in replies if "duplicate" in reply]
        assert len(again) == 500
        fresh = [reply["metrics"]["n7"] for reply in replies if "duplicate" not in reply]
        assert sorted([*answered.values(), *fresh]) == [*range(1, 1_001), *range(1_501, 2_001)]
        assert other.score("payments", event(card="killed"))["metrics"]["n7"] == 2_001


def killed_again_and_again(kafka: str, folder: Path, event: Event, times: int, seed: int) -> None:
    """Front-ends die at any moment under load. What they had not answered is sent again in the end: each event counts
    once, and no two are told the same count."""
    chance = random.Random(seed)
    answered: dict[str, int] = {}
    unanswered: list[dict[str, Any]] = []
    with LocalCluster(kafka, folder / "node") as cluster:
        cluster.start_units(1)
        words = ("frontend", "--broker", kafka, "--definitions", _definitions(folder))
        for _ in range(times):
            with _running(*words, prefix=cluster.prefix) as (process, client), ThreadPoolExecutor(4) as pool:
                arrays = [[event(card="killed") for _ in range(chance.randrange(1, 200))] for _ in range(8)]
                pending = [pool.submit(client.post, EVENTS, json=each) for each in arrays]
                time.sleep(0.1 * chance.random())
                process.kill()
                for sent, each in zip(arrays, pending):
                    if each.exception() is not None:
                        unanswered += sent
                        continue
                    assert each.result().status_code == 200
                    answered.update((reply["id"], reply["metrics"]["n7"]) for reply in each.result().json())
        other = cluster.serve()
        fresh: list[int] = []
        again = 0
        for first in range(0, len(unanswered), 1_000):
            for reply in other.post(EVENTS, unanswered[first : first + 1_000]).json():
                if "duplicate" in reply:
                    again += 1
                else:
                    fresh.append(reply["metrics"]["n7"])
        counts, total = [*answered.values(), *fresh], len(answered) + len(unanswered)
        assert len(set(counts)) == len(counts) == total - again
        assert max(counts) <= total
        assert other.score("payments", event(card="killed"))["metrics"]["n7"] == total + 1


@pytest.mark.timeout(900)
def test_front_ends_that_are_killed_under_load(kafka: str, tmp_path: Path, event: Event) -> None:
    killed_again_and_again(kafka, tmp_path, event, 4, seed=1)


@pytest.mark.torture
def test_many_front_ends_that_are_killed_under_load(kafka: str, tmp_path: Path, event: Event) -> None:
    killed_again_and_again(kafka, tmp_path, event, 200, seed=2)
