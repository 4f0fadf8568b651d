"""The workloads of the unit bench: definitions, events, settings."""

from dataclasses import dataclass, field, replace

from bench.payments import Payments, blocks
from railgun.catalog.definitions import parse_definitions
from railgun.task.settings import MIB, TaskSettings
from railgun.wire.door import Roles
from railgun.wire.door_table import TableDoor
from railgun.wire.encode import encode_columns

_STREAM = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card"]
lateness = "1s"
[streams.payments.fields]
"""
_THREE = "count(*) AS c{n}, sum(amount) AS s{n}, avg(amount) AS a{n}"


def _fields(count: int) -> str:
    from bench.payments import field_types

    return "".join(f'{name} = "{type_}"\n' for name, type_ in field_types(count).items())


def _metric(select: str, over: str) -> str:
    return f'[[metrics]]\nsql = """SELECT {select} FROM payments GROUP BY card OVER {over}"""\n'


def _windows(over: list[str], select: str = _THREE, fields: int = 5) -> str:
    return _STREAM + _fields(fields) + "".join(_metric(select.format(n=n), w) for n, w in enumerate(over))


@dataclass(frozen=True, slots=True)
class Workload:
    """definitions: TOML. payments: how events are made; the first `warm_up` of them fill the windows."""

    definitions: str
    payments: Payments
    warm_up: int
    batch: int = 2048
    settings: TaskSettings = field(default_factory=TaskSettings)

    def scaled(self, factor: float) -> "Workload":
        """The same with another number of measured events."""
        measured = max(1000, int((self.payments.events - self.warm_up) * factor))
        return replace(self, payments=replace(self.payments, events=self.warm_up + measured))


def make_records(workload: Workload) -> tuple[list[bytes], list[bytes]]:
    """The raw internal records, as a front-end would publish them: those of the warm-up and those measured."""
    definitions = parse_definitions(workload.definitions)
    (stream,) = definitions.streams.values()
    door = TableDoor(Roles(stream.schema(1), stream.time, stream.id, ("card",)))
    records: list[bytes] = []
    for block in blocks(workload.payments):
        events = door.admit(block).events
        made = encode_columns(1, events, 0, 1, len(records))
        records += made.to_list()
    return records[: workload.warm_up], records[workload.warm_up :]


def _payments(events: int, **options: object) -> Payments:
    defaults: dict[str, object] = {"cards": 100_000, "rate_per_s": 2000.0, "rhythm": False}
    return Payments(events, **{**defaults, **options})  # type: ignore[arg-type]


_MINUTE = ["SLIDING 60 SECONDS"]
_TEN = [f"SLIDING {60 + 6 * n} SECONDS" for n in range(10)]
_TAILS = [f"SLIDING {20_000 + 500 * n} MILLISECONDS" for n in range(120)]
_EDGES = [f"SLIDING 20 SECONDS DELAYED BY {100 + 333 * n} MILLISECONDS" for n in range(120)]
_COLD = TaskSettings(row_cache_bytes=200_000 * 9 * 8 * 2, block_cache_bytes=256 * MIB)

CASES: dict[str, Workload] = {
    "payments_1x3": Workload(_windows(_MINUTE), _payments(1_600_000), 300_000),
    "payments_10x3": Workload(_windows(_TEN), _payments(1_000_000), 300_000),
    "payments_120x3": Workload(
        _windows(_TAILS), _payments(400_000), 200_000, settings=TaskSettings(row_cache_bytes=1024 * MIB)
    ),
    "edges_240": Workload(
        _windows(_EDGES), _payments(360_000), 200_000, settings=TaskSettings(row_cache_bytes=1024 * MIB)
    ),
    "wide_1x3": Workload(_windows(_MINUTE, fields=103), _payments(400_000, fields=103), 150_000),
    "cold_10m": Workload(
        _windows(["SLIDING 5000 SECONDS"]),
        _payments(10_300_000, cards=10_000_000, card_exponent=0.0),
        10_000_000,
        settings=_COLD,
    ),
    "batch1": Workload(_windows(_TEN), _payments(340_000), 300_000, batch=1),
}
