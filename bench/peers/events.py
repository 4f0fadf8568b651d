"""The events that all peers get, as Arrow batches and as a file of JSON lines, and which of them are compared."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from bench.distributions import Float64Array, Int64Array
from bench.payments import Payments, blocks, with_integer_times
from bench.peers.work import Work

_ENDLESS = 10**11
_SECOND_MS = 1_000
BOUNDARY_WINDOW_MS = 60_000
_BOUNDARY_EVENTS, _BOUNDARY_CARDS = 1_000, 10
DISORDER_MS = 5_001
"""Events of the set with disorder come less than this behind the time of those before them."""
_DISORDER_EVENTS, _DISORDER_CARDS, _DISORDER_RATE_PER_S = 4_000, 20, 20.0


@dataclass(frozen=True, slots=True)
class Events:
    """Events in the order in which they come, as columns.

    ids: of all.  times_ms, cards, amounts: int64[n], int64[n] (a card's number), float64[n].
    """

    ids: list[str]
    times_ms: Int64Array
    cards: Int64Array
    amounts: Float64Array

    @classmethod
    def of(cls, made: list[Any]) -> "Events":
        """Take the columns out of Arrow batches."""
        table = pa.Table.from_batches([with_integer_times(batch) for batch in made])
        cards = table.column("card").to_pylist()
        return cls(
            table.column("tx_id").to_pylist(),
            table.column("ts").to_numpy(),
            np.array([int(card[1:]) for card in cards], np.int64),
            table.column("amount").to_numpy(),
        )

    def __len__(self) -> int:
        return len(self.ids)


def in_order(work: Work) -> Iterator[Any]:
    """Yield batches without an end, of events in order of time, no two at one time."""
    payments = Payments(
        _ENDLESS, cards=work.keys, card_exponent=0.0, rate_per_s=work.rate_per_s, rhythm=False
    )
    latest = -1
    for batch in blocks(payments):
        places = np.arange(batch.num_rows)
        times = _times_of(batch) - places
        times = np.maximum(np.maximum.accumulate(times), latest + 1) + places
        latest = int(times[-1])
        yield _with_times(batch, times)


def on_boundaries() -> list[Any]:
    """Return events in order, one each second: a card's often come at both ends of a window of whole seconds."""
    payments = Payments(_BOUNDARY_EVENTS, cards=_BOUNDARY_CARDS, card_exponent=0.0)
    first, made = payments.start_ms, []
    for batch in blocks(payments):
        made.append(_with_times(batch, first + np.arange(batch.num_rows) * _SECOND_MS))
        first += batch.num_rows * _SECOND_MS
    return made


def in_disorder() -> list[Any]:
    """Return events at whole seconds, many at one time, a twentieth of them up to 5 s late."""
    payments = Payments(
        _DISORDER_EVENTS,
        cards=_DISORDER_CARDS,
        card_exponent=0.0,
        rate_per_s=_DISORDER_RATE_PER_S,
        rhythm=False,
        late_share=0.05,
        late_lag_ms=DISORDER_MS - _SECOND_MS,
    )
    return [_with_times(batch, _times_of(batch) // _SECOND_MS * _SECOND_MS) for batch in blocks(payments)]


def first_of(batches: Iterator[Any], events: int) -> list[Any]:
    """Return the first events of endless batches."""
    taken: list[Any] = []
    while events:
        batch = next(batches)
        taken.append(batch.slice(0, min(events, batch.num_rows)))
        events -= taken[-1].num_rows
    return taken


def write_lines(made: list[Any], path: Path) -> None:
    """Write batches as JSON lines, times as integer ms."""
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        for batch in made:
            file.write(encoder.encode_lines(with_integer_times(batch).to_pylist()))


def _times_of(batch: Any) -> Int64Array:
    times: Int64Array = batch.column("ts").view(pa.int64()).to_numpy()
    return times


def _with_times(batch: Any, times_ms: Int64Array) -> Any:
    place = batch.schema.get_field_index("ts")
    return batch.set_column(
        place, batch.schema.field(place), pa.array(times_ms).view(batch.schema.types[place])
    )
