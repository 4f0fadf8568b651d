"""Fifty changes of a stream one after another, each seen by the events after it alone; fifty that are refused."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import railgun
from railgun.engine.errors import DefinitionsError

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*"]
lateness = "5s"
retention = "30d"
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
amount = "decimal(10,2)"
ok = "boolean"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total FROM s GROUP BY card OVER INFINITE"
"""
STEPS = 50
VALUES: dict[str, list[Any]] = {
    "string": ["", "é", "x" * 300],
    "long": [-(2**63), 0, 2**63 - 1],
    "double": [0.5, -1e300, 3.0],
    "boolean": [True, False],
    "decimal(18,4)": ["-1.5000", "99999999999999.9999"],
    "timestamp": [0, 1_700_000_000_000],
}


class Chain:
    """What was sent, and from which event on each field counts."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.since: dict[str, int] = {}
        self.types: dict[str, str] = {}

    def event(self, rng: random.Random) -> dict[str, Any]:
        """An event that has values for fields to come, too: they are not kept."""
        number = len(self.sent)
        event: dict[str, Any] = {
            "id": number,
            "ts": 1_700_000_000_000 + number,
            "card": rng.choice("ab"),
            "amount": f"{rng.randrange(1000)}.25",
            "ok": rng.choice([True, None]),
        }
        for step in range(STEPS):
            type_ = list(VALUES)[step % len(VALUES)]
            event[f"f{step}"] = rng.choice([None, *VALUES[type_]])
        self.sent.append(event)
        return event

    def counts(self, metrics: dict[str, str], card: str) -> dict[str, int]:
        """What count(field) says of the events of a card."""
        return {
            name: sum(
                event["card"] == card and event[field] is not None
                for event in self.sent[self.since.get(field, 0) :]
            )
            for name, field in metrics.items()
        }


@pytest.mark.parametrize("seed", range(3))
def test_fifty_steps(seed: int, tmp_path: Path) -> None:
    rng, chain = random.Random(seed), Chain()
    metrics: dict[str, str] = {}
    engine = railgun.Engine(tmp_path / "data")
    try:
        engine.apply(DEFINITIONS)
        for step in range(STEPS):
            type_ = list(VALUES)[step % len(VALUES)]
            engine.add_field("s", f"f{step}", type_)
            chain.since[f"f{step}"] = len(chain.sent)
            if rng.random() < 0.5:
                field = rng.choice([*chain.since, "ok"])
                metrics[f"m{step}"] = field
                engine.add_metrics(
                    "s", f"SELECT count({field}) AS m{step} FROM s GROUP BY card OVER INFINITE"
                )
            if rng.random() < 0.2:
                engine.set_lateness("s", rng.choice(["1s", "7s"]))
                engine.set_retention("s", rng.choice(["20d", "forever"]))
            if metrics and rng.random() < 0.1:
                engine.drop_metric("s", gone := rng.choice(list(metrics)))
                del metrics[gone]
            if rng.random() < 0.2:
                engine.close(checkpoint=rng.random() < 0.5)
                engine = railgun.Engine(tmp_path / "data")
            for _ in range(rng.randint(1, 3)):
                event = chain.event(rng)
                found = engine.score("s", event)["metrics"]
                assert {name: found[name] for name in metrics} == chain.counts(metrics, event["card"]), step
                assert found["n"] == sum(each["card"] == event["card"] for each in chain.sent)
        assert [field.name for field in engine.streams()[0].fields][5:] == [f"f{i}" for i in range(STEPS)]
    finally:
        engine.close()


def _with(old: str, new: str) -> Callable[[railgun.Engine], object]:
    assert old in DEFINITIONS
    return lambda engine: engine.apply(DEFINITIONS.replace(old, new))


def _field(name: str, type_: str) -> Callable[[railgun.Engine], object]:
    return lambda engine: engine.add_field("s", name, type_)


def _metric(sql: str) -> Callable[[railgun.Engine], object]:
    return lambda engine: engine.add_metrics("s", sql)


OTHER_TYPES = {
    'id = "long"': ("string", "double"),
    'ts = "timestamp"': ("long", "string"),
    'card = "string"': ("long", "boolean"),
    'amount = "decimal(10,2)"': ("decimal(11,2)", "decimal(10,3)", "double"),
    'ok = "boolean"': ("long", "string"),
}
RETYPED = [
    _with(was, was.split(" = ")[0] + f' = "{other}"')
    for was, others in OTHER_TYPES.items()
    for other in others
]
SETTINGS = [
    _with('time = "ts"\n', ""),
    _with('time = "ts"', 'time = "id"'),
    _with('id = "id"\n', ""),
    _with('id = "id"', 'id = "card"'),
    _with('["card", "*"]', '["*", "card"]'),
    _with('["card", "*"]', '["card"]'),
    _with('["card", "*"]', '["card", "id", "*"]'),
    _with('lateness = "5s"', 'lateness = "5s"\npartitions = 2'),
    _with('lateness = "5s"', 'lateness = "5s"\ndedup_events = 10'),
    _with('lateness = "5s"', 'lateness = "-1s"'),
    _with('lateness = "5s"', 'lateness = "31d"'),
    _with('lateness = "5s"', 'lateness = "5 parsecs"'),
    _with('lateness = "5s"', "lateness = 5"),
    _with('lateness = "5s"', 'lateness = "5s"\nlate_policy = "forget"'),
    _with('retention = "30d"', 'retention = "1s"'),
    _with('retention = "30d"', 'retention = "never"'),
    _with('retention = "30d"', 'retention = "30d"\nretentoin = "2d"'),
    lambda engine: engine.set_lateness("s", "40d"),
    lambda engine: engine.set_lateness("s", "soon"),
    lambda engine: engine.set_retention("s", "1s"),
]
FIELDS = [
    *(_field(name, "string") for name in ("id", "ts", "card", "amount", "ok")),
    *(_field("more", type_) for type_ in ("text", "decimal(19,2)", "decimal(5,6)", "", "long[]")),
    *(_field(name, "long") for name in ("", "1st", "two words", "x" * 300)),
]
METRICS = [
    _metric(f"SELECT {what} FROM s GROUP BY card OVER SLIDING 1 HOUR")
    for what in ("sum(card) AS x", "count(nothing) AS x", "count(*) AS n", "sum(ok) AS x", "median(amount) AS x")
] + [
    _metric("SELECT count(*) AS x FROM other GROUP BY card OVER INFINITE"),
    _metric("SELECT count(*) AS x FROM s GROUP BY nothing OVER INFINITE"),
    _metric("SELECT count(*) AS x FROM s WHERE amount GROUP BY card OVER INFINITE"),
]  # fmt: skip
ILLEGAL = [*RETYPED, *SETTINGS, *FIELDS, *METRICS]


def test_fifty_illegal_changes(tmp_path: Path) -> None:
    """Each is refused with what is wrong, and changes nothing."""
    assert len(ILLEGAL) >= 50
    rng, chain = random.Random(1), Chain()
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        before = engine.streams(), engine.metrics("s")
        for number, change in enumerate(ILLEGAL):
            with pytest.raises(DefinitionsError) as caught:
                change(engine)
            assert str(caught.value), number
            assert (engine.streams(), engine.metrics("s")) == before, number
            event = chain.event(rng)
            assert engine.score("s", event)["metrics"]["n"] == sum(
                each["card"] == event["card"] for each in chain.sent
            )
    with railgun.Engine(tmp_path / "data") as engine:
        assert (engine.streams(), engine.metrics("s")) == before
