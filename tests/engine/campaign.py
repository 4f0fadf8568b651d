"""A random case played on a real engine and compared with the oracle, reply by reply."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from railgun.catalog.model import MetricDefinition
from railgun.engine.engine import Engine
from railgun.language.derive import ResolvedDerived
from railgun.language.types import Kind
from tests.engine.player import SMALLEST, EnginePlayer
from tests.oracle.compare import differences
from tests.oracle.definitions import Stream
from tests.oracle.steps import Reply, Score, Step, perform
from tests.oracle.values import read_value
from tests.strategies.case import STREAM, Batch, Case, oracle
from tests.strategies.generate import Profile
from tests.strategies.seeded import case

_ARROW = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.int64(),
}


def run(seed: int, size: int, folder: Path) -> list[str]:
    """What is wrong in the replies to the case of a seed, a line each; the engine is disturbed by its bits."""
    return play(
        case(
            seed,
            size,
            Profile(
                explicit_warm=seed % 4 == 3,
                derives=seed % 5 != 0,
                asks_percent=5 if seed % 5 else 0,
                twins=seed % 2 == 0,
            ),
        ),
        folder,
        tiny=seed % 3 != 0,
        tables=seed % 2 == 1,
    )


def play(drawn: Case, folder: Path, *, tiny: bool, tables: bool) -> list[str]:
    """tiny: the smallest limits. tables: events of a batch go in as one table where they can."""
    model, player = oracle(drawn), EnginePlayer(folder, STREAM, SMALLEST if tiny else None)
    found: list[str] = []
    restarts = place = 0
    try:
        player.apply(drawn.definitions)
        for batch in drawn.batches():
            if batch.restart:
                restarts += 1
                player.restart(crash=restarts % 2 == 1)
            for run_of in _runs(batch, tables):
                stream = model.stream
                expected = [perform(model, step) for step in run_of]
                got = (
                    _table(player.engine, stream, run_of, expected)
                    if len(run_of) > 1
                    else [perform(player, run_of[0])]
                )
                for step, wanted, reply in zip(run_of, expected, got):
                    if wanted is not None:
                        found += [f"step {place} {step}: {line}" for line in differences(wanted, reply or {})]
                    place += 1
            if found:
                return found
    finally:
        player.close()
    return found


def _runs(batch: Batch, tables: bool) -> Iterator[list[Step]]:
    """The steps one by one; with `tables` events in a row together."""
    together: list[Step] = []
    for step in batch.steps:
        if tables and isinstance(step, Score):
            together.append(step)
            continue
        if together:
            yield together
        together = []
        yield [step]
    if together:
        yield together


def as_table(stream: Stream, events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Events as columns of a stream's fields."""
    columns: dict[str, pa.Array] = {}
    for name, declared in stream.fields.items():
        type_ = _ARROW.get(declared.kind) or pa.decimal128(declared.precision, declared.scale)
        values = [read_value(event.get(name), declared, name) for event in events]
        columns[name] = pa.array([_exact(value, declared.scale) for value in values], type_)
    return pa.table(columns)


def _exact(value: object, scale: int) -> object:
    """Decimals as Arrow takes them."""
    return Decimal(f"{int(value * 10**scale)}E-{scale}") if isinstance(value, Fraction) else value


def _table(
    engine: Engine, stream: Stream, steps: Sequence[Step], expected: Sequence[Reply | None]
) -> list[Reply]:
    """The replies to events that go in as a table, in the form of single ones."""
    events = [step.event for step in steps if isinstance(step, Score)]
    scored = engine.score_table(STREAM, as_table(stream, events))
    entry = engine._streams.catalog.streams[STREAM]
    kinds = kinds_of([add.metric for add in entry.metrics.values()], list(entry.derived.values()))
    return [as_reply(row, wanted or {}, kinds) for row, wanted in zip(scored.to_pylist(), expected)]


def kinds_of(metrics: Sequence[MetricDefinition], derived: Sequence[ResolvedDerived]) -> dict[str, Kind]:
    """The kinds of metrics' results, by name."""
    kinds = {metric.name: metric.resolved.result_type.kind for metric in metrics}
    return kinds | {each.name: each.result_type.kind for each in derived}


def as_reply(row: dict[str, Any], wanted: Reply, kinds: dict[str, Kind]) -> Reply:
    """A row as the reply that a single event would get; its time is not in a table."""
    reply: Reply = {"id": row["id"], "time": wanted["time"], "metrics": {}}
    for name, kind in kinds.items():
        value = row[name]
        if isinstance(value, Decimal):
            value = int(value) if kind is Kind.INTEGER128 else f"{value:f}"
        reply["metrics"][name] = value
    for key, value in row.items():
        partitioner = (
            key.partition("_")[2].replace("all", "*") if key.endswith("_all") else key.partition("_")[2]
        )
        if key.startswith("late_") and value is not None:
            reply.setdefault("late", {})[partitioner] = value
        if key.startswith("duplicate_") and value:
            reply.setdefault("duplicate", []).append(partitioner)
    if row["warming"]:
        reply["warming"] = row["warming"]
    if row["partial"]:
        reply["partial"] = dict(row["partial"])
    return reply
