"""Metrics added and dropped by one thread while another's events are answered; every reply against the oracle.

Which event a change comes before is up to the threads. The replies tell: they name the metrics in force, and those
that are warming. So the run is written down as steps, which the oracle then plays.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.oracle.compare import differences
from tests.oracle.definitions import ALL, Catalogue
from tests.oracle.steps import AddMetrics, DropMetric, Reply, Score, WarmMetric, perform
from tests.oracle.stream import Oracle, StreamOracle, home
from tests.strategies.derivations import DerivationSource
from tests.strategies.logs import History
from tests.strategies.queries import QuerySource
from tests.strategies.source import SeededSource

STREAM = "s"
DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "merchant", "*"]
lateness = "5s"
retention = "1h"
dedup_events = 40
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
merchant = "long"
amount = "double"
fee = "decimal(9,2)"
note = "string"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS s, max(note) AS x FROM s GROUP BY card OVER SLIDING 1 MINUTE"
"""
_KEPT_METRICS = 8
_PAUSES_S = (0.0, 0.0, 0.002, 0.01)


class Changeable(Protocol):
    """What is under test, behind its own interface; used by both threads."""

    def score(self, events: Sequence[dict[str, Any]]) -> list[Reply]: ...
    def add(self, sql: str) -> None: ...
    def drop(self, name: str) -> None: ...
    def names(self) -> list[str]: ...
    def crash(self) -> None:
        """End as a dying process would and begin anew; a change that it cuts off raises Cut."""


class Cut(Exception):
    """A change was under way when its engine went: it may have happened, or not."""


@dataclass(frozen=True)
class Change:
    step: AddMetrics | DropMetric
    names: tuple[str, ...]


@dataclass(frozen=True)
class Answered:
    """An event with its reply. Of the changes, `sure` had ended when it was sent, `possible` begun when answered."""

    event: dict[str, Any]
    reply: Reply
    sure: int
    possible: int


class Changer(threading.Thread):
    """Does so many changes, one after another. made: those that happened, and maybe the one under way."""

    def __init__(self, subject: Changeable, seed: int, changes: int) -> None:
        super().__init__(name="changer", daemon=True)
        self.made: list[Change] = []
        self.ended = 0
        self.up = threading.Event()
        self.up.set()
        self.error: BaseException | None = None
        self._subject, self._changes = subject, changes
        self._source = SeededSource(f"changes {seed}")
        self._queries = QuerySource(self._source)
        self._live: list[str] = []
        self._stream = Oracle(DEFINITIONS).streams[STREAM].stream

    def run(self) -> None:
        try:
            while self.ended < self._changes:
                self._change(self._next())
                time.sleep(self._source.choice(_PAUSES_S))
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            self.error = error

    def _next(self) -> Change:
        full = len(self._live) >= _KEPT_METRICS
        if self._live and self._source.chance(90 if full else 35):
            name = self._source.choice(self._live)
            return Change(DropMetric(name), (name,))
        sql, names = self._queries.query(self._stream, items_max=3)
        return Change(AddMetrics(sql, warm=False), tuple(names))

    def _change(self, change: Change) -> None:
        self.made.append(change)
        step = change.step
        try:
            if isinstance(step, AddMetrics):
                self._subject.add(step.sql)
            else:
                self._subject.drop(step.name)
        except Cut:
            self.up.wait()
            if (change.names[0] in self._subject.names()) != isinstance(step, AddMetrics):
                self.made.pop()
                return
        if isinstance(step, AddMetrics):
            self._live += change.names
        else:
            self._live.remove(step.name)
        self.ended += 1


def run(seed: int, changes: int, subject: Changeable, *, crash_every: int = 0) -> list[str]:
    """What is wrong in the replies during so many changes, a line each. crash_every: so many requests; 0: never."""
    changer = Changer(subject, seed, changes)
    source = SeededSource(f"events {seed}")
    queries, stream = QuerySource(source), Oracle(DEFINITIONS).streams[STREAM].stream
    registered = DerivationSource(queries, Catalogue(stream))
    history = History(source, queries, registered, [], explicit_warm=True)
    answered: list[Answered] = []
    requests = 0
    changer.start()
    while changer.is_alive():
        events = [history.event() for _ in range(source.choice((1, 1, 1, 4)))]
        sure = changer.ended
        replies = subject.score(events)
        possible = len(changer.made)
        answered += [Answered(e, reply, sure, possible) for e, reply in zip(events, replies, strict=True)]
        requests += 1
        if crash_every and requests % crash_every == 0:
            changer.up.clear()
            subject.crash()
            changer.up.set()
        time.sleep(source.choice(_PAUSES_S))
    if changer.error is not None:
        raise changer.error
    return wrong(answered, changer.made)


def wrong(answered: Sequence[Answered], changes: Sequence[Change]) -> list[str]:
    """What differs from the oracle, which makes each change before the event whose reply is the first to show it."""
    model = Oracle(DEFINITIONS).streams[STREAM]
    cold, done = set[str](), 0
    for place, each in enumerate(answered):
        named, first = set(each.reply["metrics"]), done
        while done < each.sure or named != set(model.catalogue.metrics):
            if done == min(each.possible, len(changes)):
                return [
                    f"event {place} names {named}, not {set(model.catalogue.metrics)}, after {done} changes"
                ]
            change = changes[done]
            perform(model, change.step)
            cold ^= set(change.names)
            done += 1
        cold &= named
        found = held_against(model, cold, each.event, each.reply)
        if found:
            return [f"event {place} {each.event} after {changes[first:done]}: {line}" for line in found]
    return [] if answered else ["no event was answered"]


def held_against(model: StreamOracle, cold: set[str], event: dict[str, Any], reply: Reply) -> list[str]:
    """How a reply differs from the oracle's. cold: metrics that are not warm; those that the reply shows to be warm are
    warmed before, and are none of them any more."""
    warm = {name for name in cold - set(reply.get("warming", ())) if _is_asked(model, name, event)}
    cold -= warm
    for name in sorted(warm):
        perform(model, WarmMetric(name))
    expected = perform(model, Score(event))
    assert expected is not None
    return differences(expected, reply)


def _is_asked(model: StreamOracle, name: str, event: dict[str, Any]) -> bool:
    """Does the event go to where the metric is at home?"""
    partitioner = home(model.stream, model.catalogue.metrics[name])
    return partitioner == ALL or event.get(partitioner) is not None
