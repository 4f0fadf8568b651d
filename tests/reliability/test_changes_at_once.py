"""Metrics added and dropped by several threads at once while one scores: every reply is the oracle's, bit for bit."""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.changes import AddMetric, Change, DropMetric
from railgun.engine.engine import Engine
from railgun.engine.engine_streams import EngineStreams
from railgun.engine.live_stream import LiveStream
from railgun.registry.errors import EngineError
from railgun.registry.origin import Origin
from railgun.task.computed_columns import ColumnComputer
from tests.counts import seeds
from tests.engine.player import SMALLEST
from tests.oracle.steps import Reply
from tests.oracle.stream import Oracle
from tests.reliability.changing import held_against

_DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*"]
lateness = "1s"
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
merchant = "long"
amount = "double"
note = "string"
[[metrics]]
sql = "SELECT count(*) AS n, max(note) AS x FROM s GROUP BY card OVER SLIDING 2 SECONDS"
[[metrics]]
sql = "SELECT last(note) AS w FROM s GROUP BY merchant OVER SLIDING 3 SECONDS DELAYED BY 1 SECOND"
"""
_ITEMS = ("count(*)", "sum(amount)", "last(LOWER(note))", "count(DISTINCT note)", "min(merchant + {k})")
_FILTERS = ("amount > {k}", "merchant = {k}", "note LIKE '%{k}%'", "amount / 3 < {k} AND merchant <> {k}")
_GROUPS = ("card", "merchant", "card, merchant", "note", "amount")
_WINDOWS = (
    *("SLIDING 2 SECONDS", "SLIDING 1 SECOND", "SLIDING 3 SECONDS DELAYED BY 1 SECOND"),
    *("INFINITE", "TUMBLING 1 SECOND", "INFINITE DELAYED BY 1 SECOND"),
)
_THREADS, _CHANGES, _KEPT = 6, 20, 5
_SLOW_S = (0.0005, 0.003)
_CACHES_BYTES = (1 << 12, 1 << 16, 1 << 20)
_PAUSES_S = (0.0, 0.0, 0.001, 0.005)


class Changer(threading.Thread):
    """Adds metrics of its own and drops them again, and asks for one that the others ask for too."""

    def __init__(self, engine: Engine, seed: int, number: int) -> None:
        super().__init__(name=f"changer {number}", daemon=True)
        self.error: BaseException | None = None
        self._engine, self._number, self._random = engine, number, random.Random(f"{seed} {number}")

    def run(self) -> None:
        try:
            self._change()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            self.error = error

    def _change(self) -> None:
        live: list[str] = []
        for k in range(_CHANGES):
            if live and (len(live) >= _KEPT or self._random.random() < 0.3):
                self._engine.drop_metric("s", live.pop(self._random.randrange(len(live))))
            elif self._random.random() < 0.1:
                self._shared(k)
            else:
                live.append(f"m{self._number}_{k}")
                self._engine.add_metrics("s", self._query(live[-1]), wait=False)
            time.sleep(self._random.choice(_PAUSES_S))

    def _shared(self, k: int) -> None:
        sql = f"SELECT count(*) AS same{k} FROM s WHERE amount > {k} GROUP BY card OVER SLIDING 2 SECONDS"
        try:
            self._engine.add_metrics("s", sql, wait=False)
        except EngineError as error:
            if "already" not in str(error):
                raise

    def _query(self, name: str) -> str:
        item, where, group, window = map(self._random.choice, (_ITEMS, _FILTERS, _GROUPS, _WINDOWS))
        sql = f"SELECT {item} AS {name} FROM s WHERE {where} GROUP BY {group} OVER {window}"
        return sql.format(k=self._random.randint(1, 9))


def event(source: random.Random, number: int) -> dict[str, Any]:
    """The event of a number; about one in ten comes late."""
    return {
        "id": number,
        "ts": 1_700_000_000_000 + 8 * number - source.choice([0] * 9 + [700]),
        "card": source.choice(("a", "b", "c", None)),
        "merchant": source.randint(0, 9),
        "amount": source.choice((None, source.random() * 10, float(source.randint(0, 9)))),
        "note": source.choice(("a1", "A2", "Zz3" * 9, None, f"n{source.randint(0, 50)}")),
    }


class Watched:
    """What the engine did, in the order in which it did it: noted where nothing else can happen in between.

    noted: changes, or events with their replies.
    """

    def __init__(self, patch: pytest.MonkeyPatch, slow_s: float) -> None:
        self.noted: list[tuple[Sequence[Change], Sequence[tuple[dict[str, Any], Reply]]]] = []
        change, score, compute = EngineStreams.change, LiveStream.score, ColumnComputer.__call__

        def noted_change(streams: EngineStreams, changes: Sequence[Change], origin: Origin) -> None:
            change(streams, changes, origin)
            self.noted.append((list(changes), ()))

        def noted_score(live: LiveStream, events: Sequence[dict[str, Any]], now_ms: int) -> list[Reply]:
            replies = score(live, events, now_ms)
            self.noted.append(((), list(zip(events, replies, strict=True))))
            return replies

        def slow_compute(column_computer: ColumnComputer, *rows: Any) -> Any:
            if threading.current_thread().name == "chunk-prefetch":
                time.sleep(slow_s)
            return compute(column_computer, *rows)

        patch.setattr(EngineStreams, "change", noted_change)
        patch.setattr(LiveStream, "score", noted_score)
        patch.setattr(ColumnComputer, "__call__", slow_compute)


def play(engine: Engine, seed: int, source: random.Random) -> None:
    """Score while changers change; raises what came up in one of them."""
    number = 0

    def score(events: int) -> None:
        nonlocal number
        engine.score_many("s", [event(source, number + k) for k in range(events)])
        number += events

    score(300)
    changers = [Changer(engine, seed, k) for k in range(_THREADS)]
    for changer in changers:
        changer.start()
    while any(changer.is_alive() for changer in changers):
        score(source.choice((1, 1, 5, 20)))
        time.sleep(source.choice(_PAUSES_S))
    score(100)
    for changer in changers:
        if changer.error is not None:
            raise changer.error


def wrong(watched: Watched) -> list[str]:
    """What differs from the oracle. Which metrics warm before which event is up to the engine: the replies tell."""
    model, cold = Oracle(_DEFINITIONS).streams["s"], set[str]()
    for changes, answered in watched.noted:
        for change in changes:
            if isinstance(change, AddMetric) and change.metric.name not in model.catalogue.metrics:
                model.add_metrics(change.metric.sql, warm=False)
                cold.add(change.metric.name)
            elif isinstance(change, DropMetric):
                model.drop_metric(change.name)
                cold.discard(change.name)
        for asked, reply in answered:
            found = held_against(model, cold, asked, reply)
            if found:
                return [f"event {asked}: {line}" for line in found]
    return []


def changed(seed: int, folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    source = random.Random(seed)
    watched = Watched(patch, source.choice(_SLOW_S))
    settings = replace(SMALLEST, chunk_cache_bytes=source.choice(_CACHES_BYTES))
    with Engine(folder, durability="os", settings=settings) as engine:
        engine.apply(_DEFINITIONS)
        play(engine, seed, source)
    return wrong(watched)


@pytest.mark.parametrize("seed", seeds(range(2), range(3)))
def test_changes(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert changed(seed, tmp_path / "data", monkeypatch) == []


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_cases(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert changed(seed, tmp_path / "data", monkeypatch) == []
