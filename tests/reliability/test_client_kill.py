"""Both clients, from many threads and tasks, on a server that is killed again and again: each event counts once."""

import asyncio
import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import railgun
from railgun.client.replies import EventAnswer
from tests.oracle.compare import differences, same_value
from tests.oracle.stream import Oracle, StreamOracle
from tests.reliability.mortal_server import MortalServer

DEFINITIONS = """
[streams.payments]
time = "ts"
{id}
partitioners = ["card", "*"]
lateness = "1d"
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
amount = "double"
n = "long"
[[metrics]]
sql = '''SELECT count(*) AS n7, sum(amount) AS s7, sum(n) AS l7 FROM payments GROUP BY card OVER SLIDING 7 DAYS'''
[[metrics]]
sql = "SELECT count(*) AS everyone FROM payments OVER INFINITE"
"""
WITH_ID = DEFINITIONS.format(id='id = "tx_id"')
FIRST_MS = 1_700_000_000_000
PATIENCE: dict[str, Any] = {"patience_s": 300.0, "connects_within_s": 120.0}
# How many events each kind of call takes, and the share of all events that go by it.
TOGETHER = {"single": 1, "batch": 20, "lines": 60}
SHARE = {"single": 1, "batch": 4, "lines": 5}
Events = list[dict[str, Any]]


class Worker:
    """Sends the events of a card in their order, and knows what the oracle says of them."""

    def __init__(self, kind: str, number: int, events: int) -> None:
        self.kind, self.card, self._events = kind, f"{kind}{number}", events
        self._random = random.Random(self.card)
        self.oracle = Oracle(WITH_ID).streams["payments"]
        self.compared = self.duplicates = 0

    def calls(self) -> Iterator[Events]:
        """The events of one call after another."""
        made = (self._event(place) for place in range(self._events))
        while together := list(itertools.islice(made, TOGETHER[self.kind])):
            yield together

    def _event(self, place: int) -> dict[str, Any]:
        return {
            "tx_id": f"{self.card}-{place}",
            "ts": FIRST_MS + 10 * place,
            "card": self.card,
            "amount": self._random.uniform(-1e6, 1e6),
            "n": self._random.randint(-(2**62), 2**62),
        }

    def compare(self, events: Events, answers: Sequence[EventAnswer]) -> None:
        """An event that was answered at its first coming has the oracle's reply. One that came again has the values of
        its own time, or of a later one among those that came again with it."""
        expected = [self.oracle.score(event) for event in events]
        assert len(answers) == len(events)
        for place, answer in enumerate(answers):
            assert not isinstance(answer, railgun.ProblemError), answer
            assert "late" not in answer
            is_again = [isinstance(each, dict) and "duplicate" in each for each in answers[place:]]
            last = place + next((n for n, again in enumerate(is_again) if not again), len(is_again))
            can_be = expected[place : max(place + 1, last)]
            assert any(self._same(each, answer) for each in can_be), (answer, can_be)
            self.duplicates += "duplicate" in answer
            self.compared += 1

    @staticmethod
    def _same(expected: dict[str, Any], answer: railgun.Reply) -> bool:
        metrics = [name for name in expected["metrics"] if name != "everyone"]
        return all(same_value(expected["metrics"][name], answer["metrics"][name]) for name in metrics)


def run_threads(url: str, workers: Sequence[Worker], done: Callable[[int], None]) -> None:
    """Every worker in a thread of its own, on one client."""
    with railgun.Client(url, **PATIENCE) as client, ThreadPoolExecutor(len(workers)) as threads:
        list(threads.map(lambda worker: _work(client, worker, done), workers))


def _work(client: railgun.Client, worker: Worker, done: Callable[[int], None]) -> None:
    if worker.kind == "lines":
        sent: Events = []
        answers = client.score_all("payments", _noted(worker, sent), part_events=TOGETHER["lines"])
        while part := list(itertools.islice(answers, TOGETHER["lines"])):
            worker.compare(sent[: len(part)], part)
            del sent[: len(part)]
            done(len(part))
        return
    for events in worker.calls():
        if worker.kind == "single":
            worker.compare(events, [client.score("payments", events[0])])
        else:
            worker.compare(events, client.score_batch("payments", events))
        done(len(events))


async def run_tasks(url: str, workers: Sequence[Worker], done: Callable[[int], None]) -> None:
    """Every worker in a task of its own, on one client."""
    async with railgun.AsyncClient(url, **PATIENCE) as client:
        await asyncio.gather(*(_work_async(client, worker, done) for worker in workers))


async def _work_async(client: railgun.AsyncClient, worker: Worker, done: Callable[[int], None]) -> None:
    if worker.kind == "lines":
        sent: Events = []
        part: list[EventAnswer] = []
        async for answer in client.score_all("payments", _noted(worker, sent), part_events=TOGETHER["lines"]):
            part.append(answer)
            if len(part) == min(TOGETHER["lines"], len(sent)):
                worker.compare(sent[: len(part)], part)
                done(len(part))
                del sent[: len(part)]
                part = []
        assert not part
        return
    for events in worker.calls():
        if worker.kind == "single":
            worker.compare(events, [await client.score("payments", events[0])])
        else:
            worker.compare(events, await client.score_batch("payments", events))
        done(len(events))


def _noted(worker: Worker, sent: Events) -> Iterator[dict[str, Any]]:
    for events in worker.calls():
        for event in events:
            sent.append(event)
            yield event


def score_while_it_dies(folder: Path, seed: int, events: int, kills: int) -> None:
    """So many events by each kind of call, half of them by each client, on a server that is killed so many times."""
    each = {kind: max(1, events * SHARE[kind] // sum(SHARE.values()) // 4) for kind in TOGETHER}
    workers = [Worker(kind, number, each[kind]) for number in range(4) for kind in TOGETHER]
    total = 4 * sum(each.values())
    with MortalServer(folder, WITH_ID, seed, kills, total) as server:
        tasks = threading.Thread(
            target=lambda: failed.extend(_caught(server.url, workers[6:], server.done)), name="tasks"
        )
        failed: list[BaseException] = []
        tasks.start()
        run_threads(server.url, workers[:6], server.done)
        tasks.join()
        assert not failed, failed
        with railgun.Client(server.url, **PATIENCE) as client:
            keys = [{"card": worker.card} for worker in workers]
            for worker, found in zip(workers, client.values("payments", keys, ["n7", "s7", "l7"])):
                wanted = worker.oracle.values({"card": worker.card}, ["n7", "s7", "l7"])
                assert not differences({**wanted, "as_of": None}, _as_reply(found))
            assert _everyone(client) == total
        assert server.kills == kills
    assert sum(worker.compared for worker in workers) == total


def _caught(url: str, workers: Sequence[Worker], done: Callable[[int], None]) -> list[BaseException]:
    try:
        asyncio.run(run_tasks(url, workers, done))
    except BaseException as error:  # noqa: BLE001 - the test raises it
        return [error]
    return []


def _as_reply(found: railgun.KeyValues) -> dict[str, Any]:
    return {"id": None, "time": None, "metrics": found["metrics"]}


def _everyone(client: railgun.Client) -> int:
    (found,) = client.values("payments", [{}], ["everyone"])
    return int(found["metrics"]["everyone"])


def test_two_thousand_events_and_five_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILGUN_ENGINE__DURABILITY", "os")
    score_while_it_dies(tmp_path, seed=1, events=2_000, kills=5)


@pytest.mark.torture
@pytest.mark.timeout(3_600)
def test_a_hundred_thousand_events_and_a_hundred_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAILGUN_ENGINE__DURABILITY", "os")
    score_while_it_dies(tmp_path, seed=2, events=100_000, kills=100)


def test_without_an_id_an_event_counts_at_most_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILGUN_ENGINE__DURABILITY", "os")
    without_id, events, kills = DEFINITIONS.format(id=""), 1_000, 4
    outcomes = {"answered": 0, "in doubt": 0, "not taken": 0}
    counting = threading.Lock()
    with MortalServer(tmp_path, without_id, 3, kills, events) as server:
        with railgun.Client(server.url, **PATIENCE) as client:

            def work(worker: Worker) -> None:
                for (event,) in worker.calls():
                    try:
                        client.score("payments", event)
                        outcome = "answered"
                    except railgun.ClientError as error:
                        outcome = "in doubt" if error.may_have_counted else "not taken"
                    with counting:
                        outcomes[outcome] += 1
                    server.done(1)

            workers = [Worker("single", number, events // 4) for number in range(4)]
            with ThreadPoolExecutor(len(workers)) as threads:
                list(threads.map(work, workers))
            counted = _everyone(client)
        assert server.kills == kills
    assert outcomes["not taken"] == 0
    assert outcomes["in doubt"] > 0
    assert outcomes["answered"] <= counted <= outcomes["answered"] + outcomes["in doubt"]


def test_the_comparison_can_fail() -> None:
    """An event that was lost, or that counted twice, is seen in the replies."""
    worker = Worker("batch", 0, 20)
    (events,) = worker.calls()
    server: StreamOracle = Oracle(WITH_ID).streams["payments"]
    replies: list[Any] = [server.score(event) for event in events]
    Worker("batch", 0, 20).compare(events, replies)
    with pytest.raises(AssertionError):
        Worker("batch", 0, 20).compare(events, [*replies[1:], replies[0]])
    twice = Oracle(WITH_ID).streams["payments"]
    twice.score({**events[0], "tx_id": "another"})
    with pytest.raises(AssertionError):
        Worker("batch", 0, 20).compare(events, [dict(twice.score(event)) for event in events])  # type: ignore[misc]
