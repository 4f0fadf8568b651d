"""How a stream may change and how it may not: fifty changes one after another, and more than fifty to be refused."""

import random
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.scripts.player_executor import RestartablePlayer

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


def play_chain(player: RestartablePlayer, fields: Callable[[], list[str]], seed: int) -> None:
    """Fifty changes of a stream one after another, each seen by the events after it alone. fields: as they are now."""
    rng, chain = random.Random(seed), Chain()
    metrics: dict[str, str] = {}
    player.apply(DEFINITIONS)
    for step in range(STEPS):
        player.add_field(f"f{step}", list(VALUES)[step % len(VALUES)])
        chain.since[f"f{step}"] = len(chain.sent)
        if rng.random() < 0.5:
            field = rng.choice([*chain.since, "ok"])
            metrics[f"m{step}"] = field
            player.add_metrics(f"SELECT count({field}) AS m{step} FROM s GROUP BY card OVER INFINITE")
        if rng.random() < 0.2:
            player.set_lateness(rng.choice(["1s", "7s"]))
            player.set_retention(rng.choice(["20d", "forever"]))
        if metrics and rng.random() < 0.1:
            player.drop_metric(gone := rng.choice(list(metrics)))
            del metrics[gone]
        if rng.random() < 0.2:
            player.restart(crash=rng.random() < 0.5)
        for _ in range(rng.randint(1, 3)):
            event = chain.event(rng)
            found = player.score(event)["metrics"]
            assert {name: found[name] for name in metrics} == chain.counts(metrics, event["card"]), step
            assert found["n"] == sum(each["card"] == event["card"] for each in chain.sent)
    assert fields()[5:] == [f"f{i}" for i in range(STEPS)]


@dataclass(frozen=True)
class Redefined:
    """The stream's definition with one piece of its text changed."""

    old: str
    new: str

    @property
    def definitions(self) -> str:
        assert self.old in DEFINITIONS
        return DEFINITIONS.replace(self.old, self.new)

    @property
    def stream(self) -> dict[str, Any]:
        """The body of a request."""
        return {"name": "s", **tomllib.loads(self.definitions)["streams"]["s"]}


@dataclass(frozen=True)
class Settings:
    """What to change of the stream, as a request has it."""

    body: dict[str, Any]


@dataclass(frozen=True)
class Metrics:
    """A query's metrics, to be added."""

    sql: str


OTHER_TYPES = {
    'id = "long"': ("string", "double"),
    'ts = "timestamp"': ("long", "string"),
    'card = "string"': ("long", "boolean"),
    'amount = "decimal(10,2)"': ("decimal(11,2)", "decimal(10,3)", "double"),
    'ok = "boolean"': ("long", "string"),
}
RETYPED = [
    Redefined(was, was.split(" = ")[0] + f' = "{other}"')
    for was, others in OTHER_TYPES.items()
    for other in others
]
REDEFINED = [
    Redefined('time = "ts"\n', ""),
    Redefined('time = "ts"', 'time = "id"'),
    Redefined('id = "id"\n', ""),
    Redefined('id = "id"', 'id = "card"'),
    Redefined('["card", "*"]', '["*", "card"]'),
    Redefined('["card", "*"]', '["card"]'),
    Redefined('["card", "*"]', '["card", "id", "*"]'),
    Redefined('lateness = "5s"', 'lateness = "5s"\npartitions = 2'),
    Redefined('lateness = "5s"', 'lateness = "5s"\ndedup_events = 10'),
    Redefined('lateness = "5s"', 'lateness = "-1s"'),
    Redefined('lateness = "5s"', 'lateness = "31d"'),
    Redefined('lateness = "5s"', 'lateness = "5 parsecs"'),
    Redefined('lateness = "5s"', "lateness = 5"),
    Redefined('lateness = "5s"', 'lateness = "5s"\nlate_policy = "forget"'),
    Redefined('retention = "30d"', 'retention = "1s"'),
    Redefined('retention = "30d"', 'retention = "never"'),
    Redefined('retention = "30d"', 'retention = "30d"\nretentoin = "2d"'),
]
SETTINGS = [Settings({"lateness": "40d"}), Settings({"lateness": "soon"}), Settings({"retention": "1s"})]
FIELDS = [
    *(Settings({"fields": {name: "double"}}) for name in ("id", "ts", "card", "amount", "ok")),
    *(
        Settings({"fields": {"more": type_}})
        for type_ in ("text", "decimal(19,2)", "decimal(5,6)", "", "long[]")
    ),
    *(Settings({"fields": {name: "long"}}) for name in ("", "1st", "two words", "x" * 300)),
]
METRICS = [
    Metrics(f"SELECT {what} FROM s GROUP BY card OVER SLIDING 1 HOUR")
    for what in ("sum(card) AS x", "count(nothing) AS x", "count(*) AS n", "sum(ok) AS x", "median(amount) AS x")
] + [
    Metrics("SELECT count(*) AS x FROM other GROUP BY card OVER INFINITE"),
    Metrics("SELECT count(*) AS x FROM s GROUP BY nothing OVER INFINITE"),
    Metrics("SELECT count(*) AS x FROM s WHERE amount GROUP BY card OVER INFINITE"),
]  # fmt: skip
ILLEGAL: list[Redefined | Settings | Metrics] = [*RETYPED, *REDEFINED, *SETTINGS, *FIELDS, *METRICS]
assert len(ILLEGAL) >= 50
