"""A log of records in plain Python, and what crosses an edge by brute force: the oracle of the reservoir's tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from reservoir.columns import ColumnData, ColumnKind, HotColumn, Recipe, StoredColumn
from reservoir.native.jit import array_at

INT64_MIN = -(1 << 63)

# Every column a test may ask for is a function of the payload, as `compute_columns` needs.
AMOUNT = HotColumn("amount", ColumnKind.WORD)
NAME = HotColumn("name", ColumnKind.STRING)
UPPER = HotColumn("upper(name)", ColumnKind.STRING)
CARD = HotColumn("entity:card", ColumnKind.ENTITY)
ALL_COLUMNS = (AMOUNT, NAME, UPPER, CARD)
# Not kept in golden files: what can be computed of another column.
TWICE = HotColumn("2 * amount", ColumnKind.WORD)


@dataclass(frozen=True)
class Record:
    """One record of the log. amount None and name None are nulls; a record that is not accepted has no row."""

    time: int
    accepted: bool
    amount: int | None
    name: str | None
    card: int

    @property
    def payload(self) -> bytes:
        amount = "" if self.amount is None else str(self.amount)
        name = "" if self.name is None else "=" + self.name
        return f"{amount}|{self.card}|{name}".encode()

    @property
    def id(self) -> tuple[int, int]:
        return (self.card * 2654435761) & ((1 << 64) - 1), abs(self.time) & 0xFFFF


def value(column: HotColumn, record: Record) -> object:
    """What a column holds for a record."""
    if column == AMOUNT:
        return record.amount
    if column == TWICE:
        return None if record.amount is None else 2 * record.amount
    if column == CARD:
        return record.card * 7, record.card ^ 0x5555
    if record.name is None:
        return None
    return (record.name if column == NAME else record.name.upper()).encode()


def parse(payload: bytes) -> Record:
    """The record that a payload was made from, but for its time."""
    amount, card, name = payload.decode().split("|", 2)
    return Record(0, True, int(amount) if amount else None, name[1:] if name else None, int(card))


def columns_of(
    records: Sequence[Record], columns: Sequence[HotColumn], offsets: np.ndarray, payload: np.ndarray
) -> list[ColumnData]:
    """The columns as the task would make them: names lie in the payload (heap 0), computed strings in heap 1."""
    made = []
    for column in columns:
        values = [value(column, record) for record in records]
        nulls = np.array([held is None for held in values], np.uint8)
        if column.kind is ColumnKind.ENTITY:
            pairs = np.array(values, np.uint64).reshape(-1, 2)
            made.append(ColumnData(hi=pairs[:, 0].copy(), lo=pairs[:, 1].copy()))
        elif column.kind is ColumnKind.WORD:
            words = np.array([0xDEAD if held is None else held for held in values], np.uint64)
            made.append(ColumnData(words=words, nulls=nulls))
        elif column == NAME:
            ends = np.asarray(offsets[1:], np.int64)
            refs = [0 if v is None else (int(end) - len(v)) << 24 | len(v) for v, end in zip(values, ends)]
            made.append(ColumnData(words=np.array(refs, np.uint64), nulls=nulls, heaps=(payload,)))
        else:
            blob, refs = b"", []
            for held in values:
                refs.append(0 if held is None else 1 << 62 | len(blob) << 24 | len(held))
                blob += held or b""
            heap = np.frombuffer(blob + b"\0", np.uint8)
            made.append(ColumnData(words=np.array(refs, np.uint64), nulls=nulls, heaps=(payload, heap)))
    return made


def compute_columns(payload: np.ndarray, offsets: np.ndarray, columns: list[HotColumn]) -> list[ColumnData]:
    """The reservoir's callback."""
    raw = payload.tobytes()
    records = [parse(raw[a:b]) for a, b in zip(offsets.tolist(), offsets[1:].tolist())]
    return columns_of(records, columns, offsets, payload)


def find_recipe(columns: Sequence[HotColumn]) -> Recipe | None:
    """The reservoir's other callback."""
    return Recipe((AMOUNT,), _twice) if set(columns) == {TWICE} else None


def _twice(rows: int, sources: Sequence[StoredColumn]) -> list[ColumnData]:
    (amount,) = sources
    assert amount.column == AMOUNT
    nulls = array_at(amount.nulls_at, rows, np.uint8).copy() if amount.nulls_at else None
    return [ColumnData(words=array_at(amount.words_at, rows, np.uint64) * np.uint64(2), nulls=nulls)]


@dataclass
class EventLog:
    """A log with its clock and floor after each record. Times are moved up to the floor, as `rewrite` does."""

    lateness: int
    records: list[Record] = field(default_factory=list)
    clocks: list[int] = field(default_factory=list)
    floors: list[int] = field(default_factory=list)

    @property
    def clock(self) -> int:
        return self.clocks[-1] if self.clocks else INT64_MIN

    @property
    def floor(self) -> int:
        return self.floors[-1] if self.floors else INT64_MIN

    def add(self, record: Record) -> None:
        record = Record(
            max(record.time, self.floor), record.accepted, record.amount, record.name, record.card
        )
        clock, floor = self.clock, self.floor
        if record.accepted:
            clock = max(clock, record.time)
            floor = max(floor, clock - self.lateness, INT64_MIN)
        self.records.append(record)
        self.clocks.append(clock)
        self.floors.append(floor)

    def crossings(self, delta: int, born: int, begin: int, end: int) -> list[tuple[int, int]]:
        """(record, row's seq) for what crosses the edge at records [begin, end), in order.

        born: records before the edge was made and put at the clock of that moment.
        """
        found = []
        for seq, row in enumerate(self.records[:end]):
            known = max(seq, born - 1)  # from here on the edge could have met the row
            if not row.accepted or (known >= 0 and self.clocks[known] - delta >= row.time):
                continue
            if begin > known + 1 and self.clocks[begin - 1] - delta >= row.time:
                continue  # it crossed before: the clock never goes back
            for i in range(max(begin, known + 1), end):
                if self.clocks[i] - delta >= row.time:
                    found.append((i, row.time, seq))
                    break
        return [(i, seq) for i, _, seq in sorted(found)]
