"""Feeds an EventLog to a reservoir in batches, as a task would, and checks every entry against the oracle."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from reservoir import frames as f
from reservoir import layout as at
from reservoir.columns import ColumnKind, HotColumn
from reservoir.executor import Executor
from reservoir.files import DiskFiles, Files
from reservoir.native.jit import address, array_at
from reservoir.open_region.saved_rows import SavedRows
from reservoir.reservoir import Reservoir, Settings
from reservoir.segments.length import Length
from reservoir.thread_executor import ThreadExecutor
from tests.reservoir.event_log import INT64_MIN, EventLog, columns_of, compute_columns, find_recipe, value


@dataclass(frozen=True)
class Checkpoint:
    """What a task's checkpoint would keep of its reservoir. saved_rows: None as an earlier release would write it."""

    position: int
    length: Length
    saved_rows: list[int] | None
    restore_from: int
    edges: tuple[tuple[int, int], ...]
    hot: tuple[HotColumn, ...]
    fills: tuple[tuple[int, int, int], ...] = ()


class LogDriver:
    """A reservoir behind a log. `edges` maps edge numbers to (delta, records before it was made)."""

    executor: Executor = ThreadExecutor()

    def __init__(
        self,
        folder: Path,
        log: EventLog,
        settings: Settings,
        files: Files | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.executor = executor or self.executor
        self.folder, self.log, self.settings, self.files = folder, log, settings, files or DiskFiles()
        self.position = 0
        self.edges: dict[int, tuple[int, int]] = {}
        self.hot: tuple[HotColumn, ...] = ()
        self.limit: int | None = None
        self.first_entry_limit: int | None = None
        self.open(Length())

    def open(self, length: Length | None, saved_rows: list[int] | None = None) -> None:
        self.reservoir = Reservoir.open(
            self.folder,
            self.files,
            compute_columns=compute_columns,
            executor=self.executor,
            find_recipe=find_recipe,
            settings=self.settings,
            length=length,
            saved_rows=saved_rows,
        )

    # --- what a task does --------------------------------------------------------------------------

    def set_hot(self, columns: tuple[HotColumn, ...]) -> None:
        self.hot = columns
        self.reservoir.set_hot(columns)
        for column_set in (0, 1):
            self.reservoir.set_columns(column_set, range(len(columns)))

    def add_edge(self, delta: int) -> int:
        edge = self.reservoir.add_edge(delta)
        self._seek(edge, delta)
        self.edges[edge] = (delta, self.position)
        return edge

    def remove_edge(self, edge: int) -> None:
        self.reservoir.remove_edge(edge)
        del self.edges[edge]

    def run(self, records: int) -> None:
        """One batch: the next records of the log."""
        end = min(self.position + records, len(self.log.records))
        if end == self.position:
            return
        self._load(range(self.position, end))
        self.reservoir.append()
        self._advance(end - self.position)
        self.position = end
        self.reservoir.seal(self.log.floors[end - 1])

    def run_all(self, cuts: list[int]) -> None:
        """The rest of the log, in batches of the sizes given, over and over."""
        self.run_all_until(len(self.log.records), cuts)

    def run_all_until(self, position: int, cuts: list[int]) -> None:
        """The log up to a position."""
        k = 0
        while self.position < position:
            self.run(min(cuts[k % len(cuts)], position - self.position))
            k += 1

    def checkpoint(self) -> Checkpoint:
        least = self.reservoir.least_open_seq()
        sealed = self.reservoir.last_sealed or (INT64_MIN, INT64_MIN)
        rows = enumerate(self.log.records[: self.position])
        assert least == min((seq for seq, r in rows if r.accepted and (r.time, seq) > sealed), default=None)
        # The checkpoint before this one is durable.
        self.reservoir.forget_saved_rows()
        saving = self.reservoir.save_open_rows()
        saving.write()
        length = self.reservoir.sync(self.reservoir.chunks)
        restore_from = self.position if least is None else least
        saved_rows = None if self.position % 4 == 0 else saving.files
        return Checkpoint(
            self.position, length, saved_rows, restore_from, tuple(self.edges.values()), self.hot
        )

    def restart(self, checkpoint: Checkpoint) -> None:
        """As after a crash: back to the checkpoint, the open region from the log."""
        self.reservoir.close()
        self.recover(checkpoint)

    def recover(self, checkpoint: Checkpoint) -> None:
        self.open(checkpoint.length, checkpoint.saved_rows)
        self.set_hot(checkpoint.hot)
        self.position = checkpoint.position
        if checkpoint.saved_rows is not None:
            for rows in self.reservoir.saved_rows():
                self._restore_saved(rows)
        elif checkpoint.restore_from < checkpoint.position:
            self._load(range(checkpoint.restore_from, checkpoint.position))
            self.reservoir.restore()
        self.edges = {}
        for delta, born in checkpoint.edges:
            edge = self.reservoir.add_edge(delta)
            self._seek(edge, delta)
            self.edges[edge] = (delta, born)

    def take(self, fill: int, rows: int, up_to: int) -> tuple[list[tuple[int, int]], bool]:
        """One slice of a fill: (time, seq) of its rows, each checked, and whether that was all."""
        given = self.reservoir.fill_next(fill, rows, up_to)
        assert given.count <= rows
        changes, found = self.reservoir.changelog, []
        for k in range(given.count):
            seq = self.check_row(int(changes.frame[k]), int(changes.row[k]))
            assert changes.at[k] == 0
            found.append((self.log.records[seq].time, seq))
        if found:
            assert self.reservoir.fill_position(fill) == found[-1]
        return found, given.done

    # --- checks ------------------------------------------------------------------------------------

    def check_rows(self, *, complete: bool = True) -> None:
        """The reservoir holds exactly the accepted records of the log up to the position, in order."""
        rows = [
            (record.time, seq)
            for seq, record in enumerate(self.log.records[: self.position])
            if record.accepted
        ]
        rows.sort()
        found: list[tuple[int, int]] = []
        for scanned in self.reservoir.scan(range(len(self.hot))):
            for k, (time, seq) in enumerate(zip(scanned.time.tolist(), scanned.seq.tolist())):
                record = self.log.records[seq]
                raw = scanned.payload[scanned.offsets[k] : scanned.offsets[k + 1]].tobytes()
                assert raw == record.payload
                assert tuple(scanned.ids[k].tolist()) == record.id
                found.append((time, seq))
        assert found == (rows if complete else rows[len(rows) - len(found) :])

    def _advance(self, n: int) -> None:
        done, limit = 0, self.limit
        entries: dict[int, list[tuple[int, int]]] = {edge: [] for edge in self.edges}
        while done < n:
            reached = self.reservoir.advance(done, n, limit)
            assert done <= reached <= n
            for edge in self.edges:
                entries[edge] += self._entries(edge, done, max(reached, done + 1))
            done = reached
        for edge, (delta, born) in self.edges.items():
            wanted = self.log.crossings(delta, born, self.position, self.position + n)
            assert entries[edge] == wanted, (delta, born, self.position, entries[edge], wanted)

    def _entries(self, edge: int, begin: int, end: int) -> list[tuple[int, int]]:
        changes = self.reservoir.changelog
        found = []
        for k in range(int(changes.start[edge]), int(changes.end[edge])):
            record = int(changes.at[k])
            assert begin <= record < end
            seq = self.check_row(int(changes.frame[k]), int(changes.row[k]))
            found.append((self.position + record, seq))
        return found

    def check_row(self, frame: int, row: int) -> int:
        """Every hot value of a row, read as a kernel would, is what the log says; returns its seq."""
        frames = self.reservoir.words[at.FRAMES]
        seq = int(f.frame_seq(frames, frame, row))
        record = self.log.records[seq]
        assert int(f.frame_time(frames, frame, row)) == record.time
        for number, column in enumerate(self.hot):
            where = f.column_at(frames, frame, number)
            wanted = value(column, record)
            if column.kind is ColumnKind.ENTITY:
                code = f.column_code(where, row)
                assert (f.code_hi(where, code), f.code_lo(where, code)) == wanted
                assert not array_at(f.code_cache(where, code), 2, np.int64).any()
                continue
            assert bool(f.column_null(where, row)) == (wanted is None)
            word = int(f.column_word(where, row))
            if column.kind is ColumnKind.WORD:
                assert word == (wanted or 0)
            else:
                assert self._string(f.column_heap(where), word) == (wanted or b"")
        return seq

    def _string(self, heap: int, ref: int) -> bytes:
        offset, length = ref >> 24, ref & 0xFFFFFF
        return array_at(heap + offset, length, np.uint8).tobytes() if length else b""

    # --- the batch's input -------------------------------------------------------------------------

    def _seek(self, edge: int, delta: int) -> None:
        clock = self.log.clocks[self.position - 1] if self.position else INT64_MIN
        self.reservoir.seek(edge, max(INT64_MIN, clock - delta))

    def _restore_saved(self, rows: SavedRows) -> None:
        """Put rows from a file back, after a look at what the file has of them."""
        seqs = rows.seq.tolist()
        records = [self.log.records[seq] for seq in seqs]
        assert all(record.accepted for record in records)
        assert rows.time.tolist() == [record.time for record in records]
        ends = pairwise(rows.offsets.tolist())
        assert [rows.payload[a:b].tobytes() for a, b in ends] == [record.payload for record in records]
        self._load(seqs)
        self.reservoir.restore()

    def _load(self, seqs: Sequence[int]) -> None:
        records, words = [self.log.records[seq] for seq in seqs], self.reservoir.words
        payloads = [record.payload for record in records]
        buffer = np.frombuffer(b"".join(payloads) + b"\0", np.uint8)
        offsets = np.cumsum([0, *map(len, payloads)], dtype=np.int64)
        ids = np.array([record.id for record in records], np.uint64).T.copy()
        made = columns_of(records, self.hot, offsets, buffer)
        table, heaps = np.zeros((max(1, len(made)), 2), np.int64), {0: address(buffer)}
        for k, (column, data) in enumerate(zip(self.hot, made)):
            if column.kind is ColumnKind.ENTITY:
                table[k] = address(data.hi), address(data.lo)
            else:
                table[k] = address(data.words), address(data.nulls)
                heaps |= {j: address(heap) for j, heap in enumerate(data.heaps)}
        arrays = {
            at.IN_ACCEPTED: np.array([record.accepted for record in records], np.uint8),
            at.IN_TIME: np.array([record.time for record in records], np.int64),
            at.IN_ID_HI: ids[0],
            at.IN_ID_LO: ids[1],
            at.IN_PAYLOAD: buffer,
            at.IN_PAYLOAD_OFFSETS: offsets,
            at.IN_CLOCK: np.array([self.log.clocks[seq] for seq in seqs], np.int64),
            at.IN_SEQ: np.array(seqs, np.int64),
            at.IN_COLUMNS: table,
        }
        for word, array in arrays.items():
            words[word] = address(array)
        for heap, where in heaps.items():
            words[at.IN_HEAP0 + heap] = where
        words[at.IN_N] = len(records)
        if isinstance(seqs, range):
            words[at.IN_SEQ], words[at.IN_FIRST_SEQ] = 0, seqs.start
        self._keep = (arrays, made)
