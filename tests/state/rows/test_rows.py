"""The entity table: loading, evicting, widths, stale addresses, deletion."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from railgun.state import keys
from railgun.state.errors import (
    BatchTooLargeError,
    LayoutError,
    StoreCorruptionError,
    StoreError,
    StoreVersionError,
)
from railgun.state.rocks import StoreLimits
from railgun.state.rows.access import find_row, read_touch, row_group, row_hi, row_is, row_lo, touch_row
from railgun.state.rows.context import FLAG_USED, ROW_HEAD_BYTES, ROW_TAGS, ROWS_SALT, ROWS_STAMP
from railgun.state.rows.table import EntityTable
from railgun.state.status import DONE, ROWS_DRAIN
from railgun.state.store import Store
from reservoir.native.jit import array_at
from tests.state.state_run import SALT

KIB = 1024
U = np.uint64


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "state", StoreLimits(1 << 20, 1 << 20))
    opened.recover()
    yield opened
    opened.close()


def entities(group: int, numbers: list[int] | range) -> np.ndarray:
    return np.array([(group, number + 1, number * 77) for number in numbers], U).reshape(-1, 3)


def load(table: EntityTable, group: int, numbers: list[int] | range) -> list[int]:
    """Load rows in a batch of their own and give their addresses."""
    table.next_stamp()
    wanted = entities(group, numbers)
    table.load(wanted, len(wanted))
    found = table.find(wanted)
    assert found.all()
    return found.tolist()


def cells(row: int, n: int) -> np.ndarray:
    return array_at(row + ROW_HEAD_BYTES, n, U)


def change(table: EntityTable, row: int, n: int, value: int) -> None:
    assert touch_row(table.context, row) == DONE
    cells(row, n)[:] = value


def change_all(table: EntityTable, numbers: range) -> None:
    for number in numbers:
        change(table, load(table, 0, [number])[0], 28, 1)


def changed_before_the_epoch(store: Store, memory_bytes: int) -> tuple[EntityTable, list[int]]:
    """500 rows that are all the same, and not stored yet where an epoch begins."""
    table = EntityTable(memory_bytes, store, salt=SALT)
    table.set_layout(0, 1, 100)
    rows = load(table, 0, range(500))
    for row in rows:
        change(table, row, 100, 2**63 + 1)
    table.set_epoch(2)
    return table, rows


def change_in_the_epoch(table: EntityTable, rows: list[int]) -> int:
    """Change rows of 100 cells; how often there had to be made room for copies of what they were."""
    flushed = 0
    for row in rows:
        while touch_row(table.context, row) == ROWS_DRAIN:
            table.flush_copies()
            flushed += 1
        cells(row, 100)[:] = 7
    return flushed


def read(table: EntityTable, number: int) -> int:
    """The first cell of a row of 100 that are all the same."""
    found = cells(load(table, 0, [number])[0], 100)
    assert len(set(found.tolist())) == 1
    return int(found[0])


def assert_stored_as_before_the_epoch(store: Store) -> None:
    written = store.get([keys.row_key(0, number + 1, number * 77) for number in range(500)])
    assert {epoch for epoch, _ in written} == {1}
    assert len({body for _, body in written}) == 1


def is_row(table: EntityTable, row: int, group: int, number: int) -> bool:
    return bool(row_is(table.context, row, group, U(number + 1), U(number * 77)))


def find(table: EntityTable, group: int, number: int) -> int:
    return int(find_row(table.context, group, U(number + 1), U(number * 77)))


# --- loading ---------------------------------------------------------------------------------------


def test_a_new_row_is_zero_and_is_found(store: Store) -> None:
    table = EntityTable(64 * KIB, store, salt=SALT)
    table.set_layout(3, 1, 7)
    assert find(table, 3, 5) == 0
    (row,) = load(table, 3, [5])
    assert find(table, 3, 5) == row
    assert find(table, 2, 5) == find(table, 3, 6) == 0
    assert not cells(row, 7).any()
    assert (row_group(row), row_hi(row), row_lo(table.context, row)) == (3, 6, 385)
    assert table.entities(np.array([row])).tolist() == [[3, 6, 385]]


def test_an_entity_named_twice_or_resident_gets_one_row(store: Store) -> None:
    table = EntityTable(64 * KIB, store, salt=SALT)
    table.set_layout(0, 1, 7)
    (first,) = load(table, 0, [1])
    change(table, first, 7, 9)
    assert load(table, 0, [1, 2, 1, 2, 2]) == [
        first,
        find(table, 0, 2),
        first,
        find(table, 0, 2),
        find(table, 0, 2),
    ]
    assert table.stats().resident == 2
    assert cells(first, 7).tolist() == [9] * 7


def test_only_the_first_n_are_loaded(store: Store) -> None:
    table = EntityTable(64 * KIB, store, salt=SALT)
    table.set_layout(0, 1, 7)
    table.load(entities(0, range(5)), 2)
    assert [find(table, 0, number) != 0 for number in range(5)] == [True, True, False, False, False]


def test_rows_of_groups_without_a_layout_are_refused_and_nothing_stays(store: Store) -> None:
    table = EntityTable(64 * KIB, store, salt=SALT)
    table.set_layout(1, 1, 7)
    for group in (0, 2, 70_000):
        with pytest.raises(LayoutError, match=f"group {group}"):
            table.load(np.concatenate([entities(1, [1]), entities(group, [1])]), 2)
    assert table.stats().resident == 0


def test_rows_come_back_as_they_were_changed_or_not(store: Store) -> None:
    table = EntityTable(16 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 20)
    rng = np.random.default_rng(1)
    expected = {}
    for round_ in range(3):
        for number in range(300):
            (row,) = load(table, 0, [number])
            assert cells(row, 20).tolist() == expected.get(number, [0] * 20)
            if (number + round_) % 3:
                assert touch_row(table.context, row) == DONE
                # Zeros, as most cells are, and whatever else.
                cells(row, 20)[:] = rng.integers(0, 2**64, 20, U) * rng.integers(0, 2, 20, U)
                expected[number] = cells(row, 20).tolist()
    assert table.stats().evicted > 700


@pytest.mark.parametrize("width", [1, 7, 8, 9, 63, 64, 65, 400])
def test_rows_of_any_width_come_back(store: Store, width: int) -> None:
    table = EntityTable(32 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, width)
    numbers = range(2 + 60 * KIB // (8 * width + 32))
    for number in numbers:
        change(table, load(table, 0, [number])[0], width, number + 1)
        cells(find(table, 0, number), width)[number % width] = 0
    for number in numbers:
        expected = [number + 1] * width
        expected[number % width] = 0
        assert cells(load(table, 0, [number])[0], width).tolist() == expected
    assert table.stats().evicted > 0


# --- what stays and what goes ----------------------------------------------------------------------


def test_rows_of_the_batch_stay_and_a_batch_that_is_too_large_leaves_the_table_whole(store: Store) -> None:
    table = EntityTable(16 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 28)
    kept = load(table, 0, range(30))
    for i, row in enumerate(kept):
        change(table, row, 28, i + 1)
    fits = table.stats().resident
    with pytest.raises(BatchTooLargeError) as caught:
        table.load(entities(0, range(100, 1000)), 900)
    assert "16384 bytes" in str(caught.value)
    assert caught.value.needed > 0
    assert [find(table, 0, number) for number in range(30)] == kept
    assert table.stats().resident == fits
    assert find(table, 0, 100) == 0
    load(table, 0, range(200, 230))
    assert [cells(row, 28)[0] for row in load(table, 0, range(30))] == list(range(1, 31))


def test_rows_used_since_the_hand_passed_are_spared_once(store: Store) -> None:
    table = EntityTable(16 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 28)
    hot = list(range(8))
    for number in range(1000, 3000):
        load(table, 0, [number])
        for wanted in hot:
            if row := find(table, 0, wanted):
                read_touch(table.context, row)
        if number == 1000:
            load(table, 0, hot)
    assert all(find(table, 0, number) for number in hot)


def test_memory_stays_bounded_with_the_hash_table_in_it(store: Store) -> None:
    limit = 256 * KIB
    table = EntityTable(limit, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 1)
    for first in range(0, 20_000, 50):
        load(table, 0, range(first, first + 50))
    stats = table.stats()
    assert stats.resident > 2_500
    assert stats.used_bytes <= limit
    assert stats.evicted == 20_000 - stats.resident
    for row, number in zip(load(table, 0, range(19_990, 20_000)), range(19_990, 20_000)):
        assert is_row(table, row, 0, number)


def test_memory_goes_to_the_width_that_is_in_use(store: Store) -> None:
    table = EntityTable(128 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 12)
    table.set_layout(1, 1, 60)
    for number in range(2000):
        change(table, load(table, 0, [number])[0], 12, number)
    for round_ in range(4):
        for number in range(90):
            row = load(table, 1, [number])[0]
            assert cells(row, 60)[0] == (number + 1 if round_ else 0)
            change(table, row, 60, number + 1)
    before = table.stats().loaded
    for number in range(90):
        load(table, 1, [number])
    assert table.stats().loaded == before, "90 rows in use, of 46 KiB together, must be in memory by now"
    assert table.stats().segments_moved > 8
    assert [cells(load(table, 0, [number])[0], 12)[4] for number in range(0, 2000, 97)] == list(
        range(0, 2000, 97)
    )


def test_a_width_that_is_in_use_keeps_its_memory(store: Store) -> None:
    table = EntityTable(64 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 12)
    table.set_layout(1, 1, 60)
    for number in range(20):
        load(table, 0, [number])
    for number in range(3000):
        load(table, 1, [number])
        load(table, 0, [number % 20])
    assert table.stats().loaded == 3020, "a stream of rows used once must not push out those in use"


# --- addresses -------------------------------------------------------------------------------------


def test_the_address_of_an_evicted_row_is_known_to_be_stale(store: Store) -> None:
    table = EntityTable(16 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 28)
    old = load(table, 0, range(20))
    for number in range(100, 300):
        load(table, 0, [number])
    assert not any(is_row(table, row, 0, number) for number, row in enumerate(old))
    assert [is_row(table, row, 0, number) for number, row in enumerate(load(table, 0, range(20)))] == [
        True
    ] * 20


def test_no_cell_passes_for_the_head_of_a_row(store: Store) -> None:
    """Old addresses into memory that now belongs to wider rows, whose cells hold the hashes of old rows."""
    table = EntityTable(16 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 1)
    old = {}
    for first in range(0, 300, 50):
        old.update(zip(range(first, first + 50), load(table, 0, range(first, first + 50))))
    table.set_layout(1, 1, 400)
    salt = int(array_at(table.context + ROWS_SALT, 1, U)[0])
    assert salt != 0
    tried = 0
    for number in range(40):
        row = load(table, 1, [number])[0]
        assert touch_row(table.context, row) == DONE
        for victim, address in old.items():
            if row + ROW_HEAD_BYTES <= address <= row + 8 * 400:
                head = array_at(address, 4, U)
                head[:] = (victim + 1, victim * 77, 0, 0)
                assert not is_row(table, address, 0, victim)
                tried += 1
    assert tried > 100


def test_stamps_wrap_round(store: Store) -> None:
    table = EntityTable(16 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 28)
    array_at(table.context + ROWS_STAMP, 1, np.int64)[0] = 2**32 - 2
    for number in range(100):
        (row,) = load(table, 0, [number])
        tags = int(array_at(row + ROW_TAGS, 1, U)[0])
        assert tags >> 32 == (2**32 - 1 + number) % 2**32
        assert tags & int(FLAG_USED)


# --- dirty rows ------------------------------------------------------------------------------------


def test_a_full_copy_buffer_is_told_and_nothing_changes_until_it_is_drained(store: Store) -> None:
    table, rows = changed_before_the_epoch(store, 2 * 1024 * KIB)
    told = 0
    for row in rows:
        status = touch_row(table.context, row)
        if status == ROWS_DRAIN:
            told += 1
            assert touch_row(table.context, row) == ROWS_DRAIN
            table.drain()
            status = touch_row(table.context, row)
        assert status == DONE
        cells(row, 100)[:] = 7
    assert told > 1
    table.drain()
    assert_stored_as_before_the_epoch(store)


def test_copies_are_written_a_piece_at_a_time_and_none_is_lost(store: Store) -> None:
    table, rows = changed_before_the_epoch(store, 64 * 1024 * KIB)
    change_in_the_epoch(table, rows)
    assert table.has_backlog
    pieces = 0
    while not table.exhausted() and pieces < 500:
        pending = table.stats().copied
        table.drain(10_000)
        assert 0 < table.stats().copied - pending < 30
        pieces += 1
        table.pending(1, 1 << 20)
    assert pieces > 20
    assert not table.has_backlog
    assert_stored_as_before_the_epoch(store)


def test_who_needs_room_for_a_copy_writes_a_piece_at_once(store: Store) -> None:
    """There is room when all of it has been written: in parts that takes longer."""
    table, rows = changed_before_the_epoch(store, 1024 * KIB)
    flushed = [change_in_the_epoch(table, [row]) for row in rows]
    assert table.stats().copied > 100
    # Written, and bound.
    assert max(flushed) == 2


def test_copies_are_lent_memory_that_nobody_uses_while_a_checkpoint_is_under_way(store: Store) -> None:
    table, rows = changed_before_the_epoch(store, 8 * 1024 * KIB)
    used_bytes = table.stats().used_bytes
    assert change_in_the_epoch(table, rows) > 4
    assert table.stats().copied == 0
    assert table.stats().used_bytes > used_bytes + 2 * 128 * KIB
    while not table.exhausted():
        table.drain(10_000)
        table.pending(1, 1 << 20)
    assert_stored_as_before_the_epoch(store)
    table.committed(1)
    assert table.stats().used_bytes == used_bytes
    assert [read(table, number) for number in range(500)] == [7] * 500


def test_rows_get_their_memory_though_some_of_it_is_lent(store: Store) -> None:
    table, rows = changed_before_the_epoch(store, 8 * 1024 * KIB)
    change_in_the_epoch(table, rows)
    for first in range(500, 12_000, 100):
        while table.touch_ahead():
            pass
        for row in load(table, 0, range(first, first + 100)):
            change(table, row, 100, first)
    assert table.stats().used_bytes <= 8 * 1024 * KIB
    assert table.stats().evicted > 500
    table.drain()
    table.committed(1)
    assert [read(table, number) for number in range(500)] == [7] * 500
    assert [read(table, number) for number in range(500, 12_000)] == [
        first for first in range(500, 12_000, 100) for _ in range(100)
    ]


def test_a_batch_that_needs_all_memory_gets_what_was_lent(store: Store, tmp_path: Path) -> None:
    def loads(table: EntityTable, rows: int) -> bool:
        try:
            load(table, 0, range(rows))
        except BatchTooLargeError:
            return False
        return True

    with closing(Store(tmp_path / "other", StoreLimits(1 << 20, 1 << 20))) as other:
        other.recover()
        table, _ = changed_before_the_epoch(other, 8 * 1024 * KIB)
        most = max(rows for rows in range(8_000, 11_000, 100) if loads(table, rows))
    table, rows = changed_before_the_epoch(store, 8 * 1024 * KIB)
    assert change_in_the_epoch(table, rows) > 4
    assert table.stats().copied == 0
    assert loads(table, most)
    assert [read(table, number) for number in range(500)] == [7] * 500


def test_copies_wait_while_rows_leave_that_have_not_changed_since(store: Store) -> None:
    table, rows = changed_before_the_epoch(store, 1024 * KIB)
    change_in_the_epoch(table, rows[:50])
    waiting, first = table._memory.copies.used_bytes, 500
    while not table.stats().evicted:
        load(table, 0, [*range(50), *range(first, first + 20)])
        first += 20
    assert table.stats().written > 0
    assert table._memory.copies.used_bytes == waiting > 0
    for more in range(first, first + 2_000, 20):
        load(table, 0, range(more, more + 20))
    assert table.stats().copied == 50
    assert [read(table, number) for number in range(50)] == [7] * 50
    assert [read(table, number) for number in range(50, 500)] == [2**63 + 1] * 450


def test_wider_rows_while_copies_wait_go_on_in_wider_pieces(store: Store) -> None:
    table, rows = changed_before_the_epoch(store, 64 * 1024 * KIB)
    change_in_the_epoch(table, rows)
    table.set_layout(1, 1, 4_000)
    (wide,) = load(table, 1, [0])
    change(table, wide, 4_000, 2**63 + 1)
    table.drain()
    assert_stored_as_before_the_epoch(store)


def test_memory_is_touched_ahead_of_rows_and_no_further_than_there_is(store: Store) -> None:
    table = EntityTable(4 * 1024 * KIB, store, salt=SALT)
    table.set_layout(0, 1, 100)
    for first in range(0, 8_000, 100):
        while table.touch_ahead():
            pass
        for row in load(table, 0, range(first, first + 100)):
            change(table, row, 100, first + 1)
    assert table.stats().evicted > 0
    for number in (0, 99, 1_999, 7_999):
        (row,) = load(table, 0, [number])
        assert set(cells(row, 100).tolist()) == {number // 100 * 100 + 1}


def test_a_row_wider_than_the_buffers_can_be_copied_and_evicted(store: Store) -> None:
    table = EntityTable(1024 * KIB, store, 256 * KIB, salt=SALT)
    table.set_layout(0, 1, 30_000)
    for number in range(8):
        change(table, load(table, 0, [number])[0], 30_000, 2**60 + number)
    assert table.stats().evicted > 0
    (row,) = load(table, 0, [0])
    change(table, row, 30_000, 5)
    table.set_epoch(2)
    assert touch_row(table.context, row) == DONE
    table.drain()
    assert table.stats().copied == 1
    assert cells(load(table, 0, [1])[0], 30_000)[29_999] == 2**60 + 1


def test_a_deleted_row_is_gone_and_comes_back_empty(store: Store) -> None:
    table = EntityTable(16 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 28)
    for number in range(200):
        change(table, load(table, 0, [number])[0], 28, 1)
    table.delete(np.array(load(table, 0, range(20)), np.int64))
    assert not table.find(entities(0, range(20))).any()
    for row in load(table, 0, range(20)):
        assert not cells(row, 28).any()
        change(table, row, 28, 3)
    load(table, 0, range(300, 330))
    assert {int(cells(row, 28)[0]) for row in load(table, 0, range(20))} == {3}


def test_a_row_that_was_never_stored_is_deleted_without_a_trace(store: Store) -> None:
    table = EntityTable(64 * KIB, store, salt=SALT)
    table.set_layout(0, 1, 5)
    change(table, load(table, 0, [1])[0], 5, 1)
    table.delete(np.array(load(table, 0, [1, 2]), np.int64))
    assert store.scan(keys.ROW, keys.after(keys.ROW), 99) == []


def test_many_rows_are_deleted_at_once(store: Store) -> None:
    table = EntityTable(1024 * KIB, store, salt=SALT)
    table.set_layout(0, 1, 5)
    for row in load(table, 0, range(5000)):
        change(table, row, 5, 1)
    table.set_epoch(2)
    table.delete(np.array(load(table, 0, range(5000)), np.int64))
    assert table.stats().resident == 0
    assert table.exhausted() or table.pending(1, 1 << 20) == []
    found = store.scan(keys.ROW, keys.after(keys.ROW), 9999)
    assert {(epoch, body) for _, epoch, body in found} == {(2, None)}


# --- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"\1\0\0", StoreCorruptionError),
        (b"\1\0\0\0\1" + b"\1\0\0", StoreCorruptionError),
        (b"\1\0\0\0\1" + b"\1\0\0\0\1", StoreCorruptionError),
        (b"\1\0\0\0\1" + b"\1\0\0\0\1" + b"12345678" + b"9", StoreCorruptionError),
        (b"\1\0\0\0\1" + b"\2\0\0\0\1" + b"12345678", StoreCorruptionError),
        (b"\1\0\0\0\2" + b"\1\0\0\0\1" + b"\x0212" + b"3", StoreCorruptionError),
        (b"\1\0\0\0\2" + b"\1\0\0\0\1" + b"\x031", StoreCorruptionError),
        (b"\1\0\0\0\3" + b"\1\0\0\0\1" + b"\x0212", StoreVersionError),
    ],
    ids=[
        "no header",
        "no bitmap",
        "a cell too few",
        "a byte too many",
        "unknown layout",
        "packed: a byte too many",
        "packed: cut short",
        "unknown format",
    ],
)
def test_a_stored_row_that_cannot_be_read_is_an_error_naming_it(
    store: Store, value: bytes, error: type[StoreError]
) -> None:
    table = EntityTable(64 * KIB, store, salt=SALT)
    table.set_layout(0, 1, 5)
    store._database[keys.row_key(0, 2, 77)] = value
    with pytest.raises(error, match=keys.row_key(0, 2, 77).hex()):
        table.load(entities(0, range(3)), 3)
    assert table.stats().resident == 0
    assert len(load(table, 0, [0, 2])) == 2


def test_after_a_failed_write_the_table_raises_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    table = EntityTable(16 * KIB, store, 4 * KIB, salt=SALT)
    table.set_layout(0, 1, 28)
    failure = StoreError(store.folder, "write", "IO error: No space left on device", "")
    monkeypatch.setattr(store, "_failed", failure)
    with pytest.raises(StoreError) as caught:
        change_all(table, range(300))
    assert caught.value is failure
