"""Made-up payments, the same for the same seed: Zipf cards and merchants, the rhythm of days and weeks.

    python -m bench.payments --events 1000000 --fields 5 --out payments.parquet

Events come in log order, in blocks that do not depend on one another: a longer run begins with a shorter one.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import Progress

from bench.distributions import Float64Array, Int64Array, WeeklyClock, numbered, zipf

BLOCK_EVENTS = 65_536
DUPLICATE_REACH_EVENTS = 1_000
AMOUNT_ORDERS = ("random", "rising", "falling")

_CORE_TYPES = {
    "tx_id": "string",
    "ts": "timestamp",
    "card": "string",
    "merchant": "string",
    "amount": "double",
}
_EXTRA_TYPES = (
    {f"s{i:02d}": "string" for i in range(30)}
    | {f"l{i:02d}": "long" for i in range(28)}
    | {f"d{i:02d}": "double" for i in range(24)}
    | {f"b{i:02d}": "boolean" for i in range(12)}
    | {f"t{i:02d}": "timestamp" for i in range(4)}
)
_STRING_CHOICES = (4, 50, 1_000, 100_000)
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Payments:
    """A description of the payments to make. Shares are of the events, in [0, 1]."""

    events: int
    fields: int = 5
    seed: int = 1
    cards: int = 100_000
    merchants: int = 10_000
    card_exponent: float = 1.0
    merchant_exponent: float = 1.0
    start_ms: int = 1_704_067_200_000  # Monday 2024-01-01 00:00 UTC
    rate_per_s: float = 100.0
    rhythm: bool = True
    late_share: float = 0.0
    late_lag_ms: int = 60_000
    duplicate_share: float = 0.0
    amount_order: str = "random"

    def __post_init__(self) -> None:
        """Raise ValueError with the remedy if the events cannot be made."""
        if self.fields not in (len(_CORE_TYPES), len(_CORE_TYPES) + len(_EXTRA_TYPES)):
            raise ValueError(f"{self.fields} fields: payments have 5 or 103")
        if not 0 <= self.events <= 10**12:
            raise ValueError(f"{self.events} events: between 0 and 10^12 can be made")
        if self.rate_per_s <= 0 or self.late_lag_ms < 1:
            raise ValueError("the rate and the lag of late events must be above 0")
        if self.amount_order not in AMOUNT_ORDERS:
            raise ValueError(f"amounts in the order {self.amount_order!r}: one of {', '.join(AMOUNT_ORDERS)}")
        for share in (self.late_share, self.duplicate_share):
            if not 0 <= share <= 1:
                raise ValueError(f"a share of {share}: shares lie between 0 and 1")


def field_types(count: int) -> dict[str, str]:
    """Return the fields of payments with `count` fields (5 or 103), in order, with their types in definitions."""
    return dict(_CORE_TYPES) if count == len(_CORE_TYPES) else _CORE_TYPES | _EXTRA_TYPES


def schema(count: int) -> Any:
    """Return the Arrow schema of payments with `count` fields."""
    arrow = {
        "string": pa.string(),
        "timestamp": pa.timestamp("ms", tz="UTC"),
        "double": pa.float64(),
        "long": pa.int64(),
        "boolean": pa.bool_(),
    }
    return pa.schema([(name, arrow[kind]) for name, kind in field_types(count).items()])


def blocks(payments: Payments, first: int = 0) -> Iterator[Any]:
    """Yield the events in log order, as Arrow batches of BLOCK_EVENTS rows (the last one shorter), from the block
    numbered `first` on."""
    clock = WeeklyClock(payments.start_ms, payments.rate_per_s, payments.rhythm)
    for block in range(first, -(-payments.events // BLOCK_EVENTS)):
        batch = _block(payments, clock, block)
        yield batch.slice(0, min(BLOCK_EVENTS, payments.events - block * BLOCK_EVENTS))


def _block(payments: Payments, clock: WeeklyClock, block: int) -> Any:
    rng = np.random.default_rng((payments.seed, block))
    # Sorted uniform points in the block's stretch of operational time: a Poisson process, given its count.
    points = np.sort(rng.random(BLOCK_EVENTS)) * BLOCK_EVENTS + block * BLOCK_EVENTS
    times_ms = clock.times_ms(points)
    cards = zipf(rng, payments.cards, payments.card_exponent, BLOCK_EVENTS)
    merchants = zipf(rng, payments.merchants, payments.merchant_exponent, BLOCK_EVENTS)
    amounts = _amounts(rng, merchants)
    if payments.amount_order != "random":
        rising = (block * BLOCK_EVENTS + np.arange(BLOCK_EVENTS) + 1) / 100.0
        amounts = rising if payments.amount_order == "rising" else 1e10 - rising
    times_ms -= _lags_ms(rng, payments)
    sources = _sources(rng, payments.duplicate_share)
    columns = [
        numbered("t", block * BLOCK_EVENTS + np.arange(BLOCK_EVENTS), 12),
        times_ms,
        numbered("c", cards, 9),
        numbered("m", merchants, 9),
        amounts,
    ]
    if payments.fields > len(_CORE_TYPES):
        columns += _extra_columns(rng, times_ms)
    shape = schema(payments.fields)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, type=kind) for column, kind in zip(columns, shape.types, strict=True)], schema=shape
    )
    return batch if payments.duplicate_share == 0 else batch.take(pa.array(sources))


def _amounts(rng: np.random.Generator, merchants: Int64Array) -> Float64Array:
    """Return amounts in whole cents, as doubles, around each merchant's own price level (from 5 to 150)."""
    level = 1.6 + (merchants * 7_919 % 1_000) / 1_000 * 3.4
    cents = np.rint(np.exp(level + 0.7 * rng.standard_normal(BLOCK_EVENTS)) * 100)
    amounts: Float64Array = np.maximum(cents, 1.0) / 100.0
    return amounts


def _lags_ms(rng: np.random.Generator, payments: Payments) -> Int64Array:
    """Return how far the time of each event lies behind that of its place in the log, in ms."""
    late = rng.random(BLOCK_EVENTS) < payments.late_share
    lags = rng.integers(1, payments.late_lag_ms, size=BLOCK_EVENTS, endpoint=True)
    return np.where(late, lags, 0)


def _sources(rng: np.random.Generator, share: float) -> Int64Array:
    """Return the event at each place of a block: its own, or an earlier one that is sent again."""
    places = np.arange(BLOCK_EVENTS)
    back = rng.integers(1, DUPLICATE_REACH_EVENTS, size=BLOCK_EVENTS, endpoint=True)
    again = (rng.random(BLOCK_EVENTS) < share) & (places > 0)
    sources = np.where(again, np.maximum(places - back, 0), places)
    while not np.array_equal(sources, sources[sources]):
        sources = sources[sources]
    return sources


def _extra_columns(rng: np.random.Generator, times_ms: Int64Array) -> list[Any]:
    """Return the 98 further columns. A fifth of them has no nulls, the others have 5, 10, 15 or 20 %."""
    makers: dict[str, Callable[[int], Any]] = {
        "string": lambda i: rng.integers(_STRING_CHOICES[i % 4], size=BLOCK_EVENTS),
        "long": lambda i: rng.integers(10 ** (1 + i % 15), size=BLOCK_EVENTS),
        "double": lambda i: np.round(rng.lognormal(i % 8, 1.0, BLOCK_EVENTS), i % 5),
        "boolean": lambda i: rng.random(BLOCK_EVENTS) < (1 + i) / 14,
        "timestamp": lambda i: times_ms - rng.integers(_DAY_MS * 10**i, size=BLOCK_EVENTS),
    }
    types = schema(len(_CORE_TYPES) + len(_EXTRA_TYPES))
    columns = []
    for place, (name, kind) in enumerate(_EXTRA_TYPES.items()):
        values = makers[kind](int(name[1:]))
        nulls = rng.random(BLOCK_EVENTS) < place % 5 * 0.05
        if kind == "string":
            column = pc.if_else(pa.array(nulls), None, numbered(name, values, 6))
        else:
            column = pa.array(values, type=types.field(name).type, mask=nulls)
        columns.append(column)
    return columns


def write(payments: Payments, path: Path, progress: Callable[[int], None] = lambda events: None) -> None:
    """Write the events to a .parquet, .ndjson or .jsonl file. progress: called with the events of each step.

    Raises ValueError on another suffix. In JSON, timestamps are integer ms.
    """
    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, schema(payments.fields)) as writer:
            for batch in blocks(payments):
                writer.write_batch(batch)
                progress(batch.num_rows)
    elif path.suffix in (".ndjson", ".jsonl"):
        encoder = msgspec.json.Encoder()
        with path.open("wb") as file:
            for batch in blocks(payments):
                file.write(encoder.encode_lines(with_integer_times(batch).to_pylist()))
                progress(batch.num_rows)
    else:
        raise ValueError(f"{path}: the suffix says the format: .parquet, .ndjson or .jsonl")


def with_integer_times(batch: Any) -> Any:
    """Return a batch whose timestamps are integers, in ms."""
    columns = [
        column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.payments",
        description="Write made-up payments to a file. The same options make the same events.",
        epilog="example: python -m bench.payments --events 1000000 --late-share 0.3 --out payments.parquet",
    )
    parser.add_argument("--out", type=Path, required=True, help="FILE.parquet, FILE.ndjson or FILE.jsonl")
    parser.add_argument("--events", type=int, required=True)
    explained = {
        "fields": "5 or 103",
        "card_exponent": "0: all cards equally frequent",
        "merchant_exponent": "0: all merchants equally frequent",
        "rate_per_s": "events per second of event time, on average over a week",
        "rhythm": "busy and quiet hours and days",
        "late_share": "share of events whose time lies behind their place in the log",
        "late_lag_ms": "how far behind at most",
        "duplicate_share": "share of events that are an earlier one sent again",
        "amount_order": f"{', '.join(AMOUNT_ORDERS)}: each greater or less than all before it",
    }
    for field in fields(Payments):
        if field.name != "events":
            parser.add_argument(
                f"--{field.name.replace('_', '-')}",
                default=field.default,
                help=f"{explained.get(field.name, '')} (default: {field.default})".strip(),
                **(
                    {"action": argparse.BooleanOptionalAction} if field.type is bool else {"type": field.type}
                ),
            )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns 0, or 2 after wrong use."""
    options = vars(_parser().parse_args(arguments))
    path = options.pop("out")
    console = Console(stderr=True)
    try:
        payments = Payments(**options)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(path.name, total=payments.events)
            write(payments, path, lambda events: bar.advance(task, events))
    except (ValueError, OSError) as error:
        print(f"bench.payments: {error}", file=sys.stderr)
        return 2
    print(f"{payments.events:,} payments of {payments.fields} fields in {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
