"""The workloads of the unit bench, as data: definitions, events, limits, and how long it takes to fill the windows."""

from dataclasses import dataclass, field, replace

from bench.payments import Payments, field_types

MIB = 1 << 20
STEADY_MARGIN_EVENTS = 70_000
CHECK_EVENTS = 20_000
MEASURED_FLOOR_EVENTS = 40_000
QUICK_WINDOW_FLOOR_EVENTS = 10_000

_STREAM = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card"]
lateness = "{lateness}"
retention = "forever"
partitions = {partitions}
[streams.payments.fields]
"""
_THREE = "count(*) AS c{n}, sum(amount) AS s{n}, avg(amount) AS a{n}"
ROW_BYTES = 9 * 8


def _windows(over: list[str], select: str, fields: int, lateness: str, partitions: int) -> str:
    types = "".join(f'{name} = "{type_}"\n' for name, type_ in field_types(fields).items())
    metrics = (
        f'[[metrics]]\nsql = """SELECT {select.format(n=n)} FROM payments GROUP BY card OVER {window}"""\n'
        for n, window in enumerate(over)
    )
    return _STREAM.format(lateness=lateness, partitions=partitions) + types + "".join(metrics)


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of events under one set of metrics.

    over, select, fields: make the definitions; `{window}` in `over` is `window_ms`.  window_ms: the longest reach
    of a window behind the clock.  payments: how events are made; as many as are asked for.  measured: events of one
    measurement.  limits: of the task's settings.  shrinks: at a smaller scale the window, what is in it and the
    limits shrink too.
    """

    over: tuple[str, ...]
    window_ms: int
    payments: Payments
    measured: int
    select: str = _THREE
    batch: int = 2048
    lateness: str = "1s"
    limits: dict[str, int] = field(default_factory=dict)
    settling: int = STEADY_MARGIN_EVENTS
    shrinks: bool = False
    drop_page_cache: bool = False
    partitions: int = 1

    @property
    def definitions(self) -> str:
        """Return the definitions of the stream and its metrics, as TOML."""
        window = f"SLIDING {self.window_ms} MILLISECONDS"
        over = [each.format(window=window) for each in self.over]
        return _windows(over, self.select, self.payments.fields, self.lateness, self.partitions)

    @property
    def window_events(self) -> int:
        """The number of events that the longest window holds, over all entities."""
        return int(self.window_ms * self.payments.rate_per_s / 1000)

    @property
    def warm_up(self) -> int:
        """The number of events after which as many leave the windows as arrive."""
        return self.window_events + self.settling

    @property
    def with_computed_partitioner(self) -> str:
        """Return the definitions with a computed field in place of the card: as partitioner, and in every group."""
        text = self.definitions.replace('"card"]', '"holder"]').replace("GROUP BY card", "GROUP BY holder")
        return text.replace("[[metrics]]", 'holder = { as = "SUBSTR(card, 1, 20)" }\n[[metrics]]', 1)

    def scaled(self, factor: float) -> "Workload":
        """Return this workload with another number of measured events. If it `shrinks`, all its parts shrink."""
        small = replace(
            self,
            measured=max(min(self.measured, MEASURED_FLOOR_EVENTS), int(self.measured * factor)),
            settling=max(STEADY_MARGIN_EVENTS, int(self.settling * min(1.0, factor))),
        )
        if not self.shrinks or factor >= 1 or self.window_events <= QUICK_WINDOW_FLOOR_EVENTS:
            return small
        factor = max(factor, QUICK_WINDOW_FLOOR_EVENTS / self.window_events)
        cards = self.payments.cards
        return replace(
            small,
            window_ms=int(self.window_ms * factor),
            payments=replace(
                self.payments, cards=cards if cards <= 1_000 else max(1_000, int(cards * factor))
            ),
            limits={name: max(8 * MIB, int(limit * factor)) for name, limit in self.limits.items()},
        )


def _payments(**options: object) -> Payments:
    defaults: dict[str, object] = {"events": 10**11, "cards": 100_000, "rate_per_s": 2000.0, "rhythm": False}
    return Payments(**{**defaults, **options})  # type: ignore[arg-type]


_MINUTE = ("{window}",)
_TEN = tuple(f"SLIDING {60 + 6 * n} SECONDS" for n in range(10))
_TAILS = tuple(f"SLIDING {20_000 + 500 * n} MILLISECONDS" for n in range(120))
_EDGES = tuple(f"SLIDING 20 SECONDS DELAYED BY {100 + 333 * n} MILLISECONDS" for n in range(120))
_LARGE_ROWS = {"row_cache_bytes": 1024 * MIB}

THROUGHPUT: dict[str, Workload] = {
    "payments_1x3": Workload(_MINUTE, 60_000, _payments(), 1_000_000),
    "payments_10x3": Workload(_TEN, 114_000, _payments(), 700_000),
    "payments_120x3": Workload(_TAILS, 79_500, _payments(), 200_000, limits=_LARGE_ROWS),
    "edges_240": Workload(_EDGES, 59_727, _payments(), 150_000, limits=_LARGE_ROWS),
    "wide_1x3": Workload(_MINUTE, 60_000, _payments(fields=103), 200_000),
    "cold_10m": Workload(
        _MINUTE,
        5_000_000,
        _payments(cards=10_000_000, card_exponent=0.0),
        200_000,
        limits={"row_cache_bytes": 200_000 * ROW_BYTES * 2, "block_cache_bytes": 256 * MIB},
        shrinks=True,
    ),
}
BATCH1 = Workload(_TEN, 114_000, _payments(), 40_000, batch=1)


def _disk(window_ms: int) -> Workload:
    return Workload(
        _MINUTE,
        window_ms,
        _payments(cards=1_000, rate_per_s=10_000.0),
        1_000_000,
        batch=512,
        lateness="100ms",
        settling=3_000_000,
        shrinks=True,
        drop_page_cache=True,
    )


WINDOWS: dict[str, Workload] = {
    "window_1e4": _disk(1_000),
    "window_1e6": _disk(100_000),
    "window_2e7": _disk(2_000_000),
}

_FAMILIES = {
    "sum": "sum(amount) AS s{n}",
    "min": "min(amount) AS s{n}",
    "max": "max(amount) AS s{n}",
    "first": "first(amount) AS s{n}",
    "stddev": "stddev(amount) AS s{n}",
    "count_distinct": "count_distinct({of}) AS s{n}",
}


def _family(name: str, payments: Payments, window_ms: int, measured: int, of: str) -> Workload:
    select = _FAMILIES[name].replace("{of}", of)
    return Workload(_MINUTE, window_ms, payments, measured, select, shrinks=payments.cards == 1)


def _monotone(name: str) -> Workload:
    order = "falling" if name == "max" else "rising"
    payments = _payments(cards=1, rate_per_s=10_000.0, amount_order=order)
    return _family(name, payments, 100_000, 300_000, "amount")


FAMILIES = {f"{name}": _family(name, _payments(), 60_000, 300_000, "merchant") for name in _FAMILIES}
MONOTONE = {f"monotone_{name}": _monotone(name) for name in _FAMILIES}


def _excluding(workload: Workload) -> Workload:
    return replace(workload, over=tuple(f"{each} EXCLUDE CURRENT" for each in workload.over))


_EXCLUDED = ("payments_1x3", "payments_10x3")
EXCLUDING = {f"{name}_excluding": _excluding(THROUGHPUT[name]) for name in _EXCLUDED}

WORKLOADS: dict[str, Workload] = {
    **THROUGHPUT,
    "batch1": BATCH1,
    **WINDOWS,
    **FAMILIES,
    **MONOTONE,
    **EXCLUDING,
}
