"""The store: epochs, undo, tombstones, commit and recovery, cut off anywhere."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from railgun.state import keys
from railgun.state.checkpoint import Checkpointer
from railgun.state.end_marker import END_MARK
from railgun.state.errors import (
    EpochOrderError,
    StoreCorruptionError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
)
from railgun.state.rocks import StoreLimits
from railgun.state.store import Store
from railgun.state.values import UNDO_ENTRY, undo_entries
from reservoir.thread_executor import ThreadExecutor
from tests.reservoir.test_retention import wait_until
from tests.state.live_copy import live_copy

LIMITS = StoreLimits(write_buffer_bytes=1 << 20, block_cache_bytes=1 << 20)


@pytest.fixture
def store(tmp_path: Path):
    opened = opened_store(tmp_path / "state")
    yield opened
    opened.close()


def opened_store(folder: Path) -> Store:
    found = Store(folder, LIMITS)
    found.recover()
    return found


def content(store: Store) -> dict[bytes, bytes]:
    """What is stored under the keys of rows, without tombstones."""
    return {key: body for key, _, body in store.scan(b"r", b"s", 1 << 30) if body is not None}


def names(store: Store, prefix: bytes) -> list[bytes]:
    """The keys under a prefix, of whatever kind."""
    return [key for key, _ in store.scan_values(prefix, keys.after(prefix), 1 << 30)]


def recovered_copy(folder: Path, copy: Path) -> tuple[tuple[int, bytes] | None, dict[bytes, bytes]]:
    """What recovery makes of a copy of a folder."""
    live_copy(folder, copy)
    store = Store(copy, LIMITS)
    try:
        return store.recover(), content(store)
    finally:
        store.close()


def test_a_key_is_absent_then_there_then_a_tombstone_with_its_epoch(store: Store) -> None:
    assert store.get([b"r1"]) == [(0, None)]
    store.write([(b"r1", b"one", 1, 0), (b"r2", b"two", 1, 0)])
    assert store.get([b"r2", b"r1", b"r3"]) == [(1, b"two"), (1, b"one"), (0, None)]
    store.write([(b"r1", None, 1, 1)])
    assert store.get([b"r1"]) == [(1, None)]


def test_what_does_not_commit_is_undone_newest_epoch_first(tmp_path: Path, store: Store) -> None:
    store.write([(b"r1", b"1", 1, 0), (b"r2", b"1", 1, 0), (b"r3", b"1", 1, 0)])
    store.commit(1, b"first")
    store.write([(b"r1", b"2", 2, 1), (b"r2", None, 2, 1)])
    store.write([(b"r1", b"3", 3, 2), (b"r2", b"3", 3, 2), (b"r4", b"3", 3, 0)])
    store.write([(b"r1", b"3 again", 3, 3), (b"r3", b"2, late", 2, 1)])
    found = recovered_copy(store.folder, tmp_path / "copy")
    assert found == ((1, b"first"), {b"r1": b"1", b"r2": b"1", b"r3": b"1"})
    store.commit(2, b"second")
    found = recovered_copy(store.folder, tmp_path / "copy of the second")
    assert found == ((2, b"second"), {b"r1": b"2", b"r3": b"2, late"})


def test_nothing_committed_leaves_nothing(tmp_path: Path, store: Store) -> None:
    store.write([(b"r1", b"1", 1, 0)])
    store.write([(b"r1", b"2", 2, 1), (b"r2", None, 2, 0)])
    assert recovered_copy(store.folder, tmp_path / "copy") == (None, {})


def test_one_undo_entry_per_key_and_epoch_with_the_value_before(store: Store) -> None:
    store.write([(b"r1", b"1", 1, 0)])
    store.write([(b"r1", b"1b", 1, 1)])
    store.write([(b"r1", b"2", 2, 1)])
    store.write([(b"r1", b"2b", 2, 2)])
    entries = [
        (keys.epoch_of(name), key, old)
        for name, value in store.scan_values(keys.UNDO, keys.after(keys.UNDO), 99)
        for key, old in undo_entries(store.folder, value)
    ]
    assert entries == [(1, b"r1", None), (2, b"r1", b"\1\0\0\0\2" + b"1b")]


def test_an_image_written_while_the_epoch_before_is_pending_can_be_kept_at_once(
    tmp_path: Path, store: Store
) -> None:
    store.write([(b"r1", b"1", 1, 0)])
    store.commit(1, b"")
    store.write([(b"r1", b"2", 2, 1)], next_epoch=3)
    store.write([(b"r1", b"3", 3, 3)])
    assert recovered_copy(store.folder, tmp_path / "copy")[1] == {b"r1": b"1"}
    store.commit(2, b"")
    assert recovered_copy(store.folder, tmp_path / "copy 2")[1] == {b"r1": b"2"}


def test_what_was_kept_but_not_overwritten_is_left_alone(tmp_path: Path, store: Store) -> None:
    store.write([(b"r1", b"1", 1, 0), (b"r2", b"1", 1, 0), (b"x", b"1", 1, 0)])
    store.commit(1, b"")
    values = store.get_values([b"r1", b"r2", b"x"])
    for key, value in zip((b"r1", b"r2", b"x"), values):
        assert value is not None
        store.keep(2, UNDO_ENTRY.pack(len(key), len(value)) + key + value)
    store.write([(b"r2", b"2", 2, 2)])
    store._database[b"r1"] = b"as it may be"
    store.close()
    again = opened_store(store.folder)
    assert again.get_values([b"r1", b"r2", b"x"]) == [b"as it may be", *values[1:]]
    again.close()


def test_where_no_write_said_what_it_wrote_everything_is_restored(tmp_path: Path, store: Store) -> None:
    store.write([(b"r1", b"1", 1, 0)])
    store.commit(1, b"")
    store.write([(b"r1", b"2", 2, 1)])
    store._database.delete(keys.written_key(2, store._number))
    assert recovered_copy(store.folder, tmp_path / "copy")[1] == {b"r1": b"1"}


# --- recovery cut off ------------------------------------------------------------------------------


def filled(folder: Path, rng: random.Random) -> tuple[Store, dict[bytes, bytes]]:
    """A store with a commit and two epochs after it; and what was there at the commit."""
    store = opened_store(folder)
    stored: dict[bytes, int] = {}
    for epoch in (1, 2, 3):
        for _ in range(12):
            images = []
            for number in sorted(rng.sample(range(40), 6)):
                key = b"r%02d" % number
                body = None if rng.random() < 0.2 else b"%d:%d" % (epoch, rng.randrange(1000))
                images.append((key, body, epoch, stored.get(key, 0)))
                stored[key] = epoch
            store.write(images)
        if epoch == 1:
            store.commit(1, b"one")
            committed = content(store)
    return store, committed


@pytest.mark.parametrize("seed", range(2))
def test_recovery_may_be_cut_off_after_each_step(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One undo value in each of them."""
    monkeypatch.setattr("railgun.state.store.BATCH_BYTES", 1)
    store, committed = filled(tmp_path / "state", random.Random(seed))
    store.close()
    steps = 0
    while True:
        cut = tmp_path / f"cut-{steps}"
        live_copy(store.folder, cut)
        half = Store(cut, LIMITS)
        done = sum(1 for _ in zip(range(steps), half.recovery_steps(1)))
        half.close()
        assert recovered_copy(cut, tmp_path / f"cut-{steps} recovered") == ((1, b"one"), committed)
        if done < steps:
            break
        steps += 1
    assert steps > 20


def test_recovery_leaves_nothing_of_the_epochs_it_undid(tmp_path: Path) -> None:
    store, committed = filled(tmp_path / "state", random.Random(5))
    store.close()
    store = opened_store(store.folder)
    assert names(store, keys.UNDO) == names(store, keys.WRITTEN) == []
    assert {keys.epoch_of(key) for key in names(store, keys.GRAVES)} == {1}, "of the committed epoch"
    while not store.settle(1):
        pass
    assert names(store, keys.GRAVES) == []
    assert len(names(store, b"r")) == len(committed), "tombstones of a committed epoch are gone"
    store.close()


def test_what_a_recovery_leaves_goes_with_the_first_steps_after_it(tmp_path: Path) -> None:
    store, committed = filled(tmp_path / "state", random.Random(6))
    store.close()
    store = opened_store(store.folder)
    assert names(store, keys.GRAVES)
    checkpointer = Checkpointer(store, [], ThreadExecutor())
    checkpointer.finish()
    checkpointer.close()
    assert names(store, keys.GRAVES) == []
    assert len(names(store, b"r")) == len(committed)
    store.close()


def test_a_store_opened_again_has_the_options_of_now(tmp_path: Path) -> None:
    """Not those that it was made with, which RocksDB keeps in a file."""
    for cache_bytes in (8 << 20, 24 << 20):
        store = Store(tmp_path, StoreLimits(block_cache_bytes=cache_bytes))
        assert store._database.property_int_value("rocksdb.block-cache-capacity") == cache_bytes
        store.close()


def tables(store: Store) -> int:
    """Those that have not been compacted, or only once."""
    return sum(int(store._database.property_value(f"rocksdb.num-files-at-level{k}") or 0) for k in (0, 1))


def test_nothing_is_compacted_before_the_first_checkpoint(tmp_path: Path) -> None:
    store = opened_store(tmp_path)
    for number in range(8):
        store.write([(b"r%d" % number, b"x", 1, 0)])
        store._database.flush()
    assert tables(store) == 8
    checkpointer = Checkpointer(store, [], ThreadExecutor())
    checkpointer.begin(b"")
    wait_until(lambda: tables(store) < 8)
    assert tables(store) < 8
    checkpointer.finish()
    checkpointer.close()
    store.close()


def test_where_much_is_written_compaction_waits_for_no_checkpoint(store: Store) -> None:
    """There may be none for long, or never: tables would pile up, and each reading looks in all of them."""
    key = 0
    while store.written_bytes <= 4 * LIMITS.write_buffer_bytes:
        store.write([(b"r%d" % (key := key + 1), random.Random(key).randbytes(4096), 1, 0)])
    wait_until(lambda: tables(store) < 8)
    assert tables(store) < 8


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_between_any_two_writes(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny batches, and a copy of the folder before each one of them: all recover the last commit."""
    monkeypatch.setattr("railgun.state.store.BATCH_BYTES", 60)
    rng = random.Random(seed)
    store = opened_store(tmp_path / "state")
    write = Store._write
    committed: dict[bytes, bytes] = {}
    crashes = 0

    def write_after_a_crash(self: Store, batch: object) -> None:
        nonlocal crashes
        if self is store:
            crashes += 1
            found = recovered_copy(store.folder, tmp_path / f"crash-{crashes}")
            assert (found[0] or (0,))[0] == store.committed_epoch
            assert found[1] == committed
        write(self, batch)

    monkeypatch.setattr(Store, "_write", write_after_a_crash)
    stored: dict[bytes, int] = {}
    model: dict[bytes, bytes] = {}
    for epoch in range(1, 6):
        for _ in range(3):
            images = []
            for number in rng.sample(range(12), 4):
                key = b"r%02d" % number
                body = None if rng.random() < 0.3 else b"%d:%d" % (epoch, rng.randrange(10**9))
                images.append((key, body, epoch, stored.get(key, 0)))
                stored[key] = epoch
                model[key] = body
            store.write(images)
        store.commit(epoch, b"")
        committed = {key: body for key, body in model.items() if body is not None}
        if rng.random() < 0.7:
            store.settle(rng.choice([1, 100]))
    assert crashes > 40
    store.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_wal_cut_anywhere_gives_a_commit_exactly(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store = opened_store(tmp_path / "state")
    stored: dict[bytes, int] = {}
    commits: dict[int, dict[bytes, bytes]] = {0: {}}
    for epoch in range(1, 8):
        for number in rng.sample(range(30), 8):
            key = b"r%02d" % number
            body = None if rng.random() < 0.2 else rng.randbytes(20)
            store.write([(key, body, epoch, stored.get(key, 0))])
            stored[key] = epoch
        store.commit(epoch, b"")
        commits[epoch] = content(store)
        store.settle(rng.choice([1, 100]))
    met = set()
    log = max(store.folder.glob("*.log"), key=lambda path: path.stat().st_size)
    for i in range(25):
        copy = tmp_path / f"cut-{i}"
        live_copy(store.folder, copy)
        size = rng.randrange(log.stat().st_size)
        (copy / END_MARK).unlink()  # the power went before that was made
        with (copy / log.name).open("r+b") as file:
            file.truncate(size)
        found, rows = recovered_copy(copy, tmp_path / f"cut-{i} recovered")
        epoch = found[0] if found else 0
        assert rows == commits[epoch], f"cut at {size}"
        met.add(epoch)
    assert len(met) > 3
    store.close()


# --- tombstones, purge -----------------------------------------------------------------------------


def test_tombstones_go_once_committed_a_few_at_a_time(store: Store) -> None:
    store.write([(b"r%d" % i, b"x", 1, 0) for i in range(9)])
    store.commit(1, b"")
    for i in range(9):
        store.write([(b"r%d" % i, None, 2, 1)])
    assert store.settle(1)
    assert len(names(store, b"r")) == 9, "not before their epoch is committed"
    store.commit(2, b"")
    left = []
    while not store.settle(2):
        left.append(len(names(store, b"r")))
    assert left == [7, 5, 3, 1]
    assert names(store, b"r") == names(store, keys.GRAVES) == names(store, keys.UNDO) == []


def test_tombstones_of_one_write_go_a_few_at_a_time(tmp_path: Path, store: Store) -> None:
    for epoch in (1, 2, 3):
        store.write([(b"r%d-%d" % (epoch, i), None, epoch, 0) for i in range(9)])
        if epoch < 3:
            store.commit(epoch, b"")
    left = []
    while not store.settle(4):
        left.append(len(names(store, b"r")))
        copy = tmp_path / f"copy-{len(left)}"
        live_copy(store.folder, copy)
        again = Store(copy)
        again.recover()
        while not again.settle(5):
            pass
        assert names(again, b"r") == names(again, keys.GRAVES) == [], (
            "whoever is cut off goes on where it came to"
        )
        again.close()
    assert left == [23, 19, 15, 11]
    assert len(names(store, b"r")) == 9, "of an epoch that is not committed"
    store.commit(3, b"")
    while not store.settle(100):
        pass
    assert names(store, b"r") == names(store, keys.GRAVES) == []


def test_a_key_written_again_before_its_tombstone_goes_stays(store: Store) -> None:
    store.write([(b"r1", b"1", 1, 0), (b"r2", b"1", 1, 0)])
    store.commit(1, b"")
    store.write([(b"r1", None, 2, 1), (b"r2", None, 2, 1)])
    store.write([(b"r2", b"2", 2, 2)])
    store.commit(2, b"")
    store.write([(b"r1", b"3", 3, 2)])
    assert store.settle(99)
    assert content(store) == {b"r1": b"3", b"r2": b"2"}


def test_an_item_need_not_know_that_its_tombstone_is_gone(tmp_path: Path, store: Store) -> None:
    store.write([(b"r1", None, 1, 0)])
    store.commit(1, b"")
    assert store.settle(99)
    store.write([(b"r1", b"2", 2, 1)])
    assert recovered_copy(store.folder, tmp_path / "copy")[1] == {}


def test_purge_deletes_whole_ranges(store: Store) -> None:
    store.write([(keys.row_key(group, 7, 8), b"x", 1, 0) for group in (0, 1, 0xFFFE)])
    store.commit(1, b"")
    store.purge([keys.group_range(1), keys.layout_range(1)])
    assert [keys.row_key_parts(key) for key in content(store)] == [(0, 7, 8), (0xFFFE, 7, 8)]


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "images",
    [
        [(b"r1", b"x", 1, 1)],
        [(b"r1", b"x", 2, 3)],
        [(b"r1", b"x", 2, 1), (b"r1", b"y", 2, 2)],
        [(b"r9", b"x", 3, 2)],
    ],
    ids=["committed epoch", "older than stored", "twice in a write", "says stored, is not"],
)
def test_images_out_of_order_are_refused_before_anything_is_written(store: Store, images: list) -> None:
    store.write([(b"r1", b"1", 1, 0)])
    store.commit(1, b"")
    with pytest.raises(EpochOrderError):
        store.write([(b"r2", b"good", 2, 0), *images])
    assert content(store) == {b"r1": b"1"}


def test_an_item_that_says_an_older_epoch_than_is_stored_is_refused(store: Store) -> None:
    store.write([(b"r1", b"1", 1, 0)])
    store.write([(b"r1", b"2", 2, 1)])
    with pytest.raises(EpochOrderError, match="newer"):
        store.write([(b"r1", b"3", 3, 1)])


def test_commits_come_one_after_the_other_and_recovery_before_all(tmp_path: Path, store: Store) -> None:
    with pytest.raises(EpochOrderError):
        store.commit(2, b"")
    fresh = Store(tmp_path / "fresh", LIMITS)
    with pytest.raises(EpochOrderError, match="recovered"):
        fresh.write([(b"r1", b"x", 1, 0)])
    fresh.close()


def test_after_a_failed_write_every_write_fails_with_the_same_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        writes = 0

        def write(self, batch: object) -> None:
            self.writes += 1
            raise Exception("IO error: No space left on device")

    full = Full()
    database = store._database
    monkeypatch.setattr(store, "_database", full)
    with pytest.raises(StoreError, match="No space left") as first:
        store.write([(b"r1", b"x", 1, 0)])
    assert str(store.folder) in str(first.value)
    with pytest.raises(StoreError) as second:
        store.commit(1, b"")
    assert second.value is first.value
    assert full.writes == 1, "the handle is not tried again"
    monkeypatch.setattr(store, "_database", database)


# --- the lock --------------------------------------------------------------------------------------

_HOLD = """
import sys, time
from pathlib import Path
from railgun.state.store import Store
store = Store(Path(sys.argv[1]))
print("open", flush=True)
time.sleep(60)
"""


def test_a_folder_has_one_owner(store: Store) -> None:
    with pytest.raises(StoreLockedError) as caught:
        Store(store.folder)
    assert str(store.folder) in str(caught.value)
    assert "Stop that process" in str(caught.value)


def test_another_process_that_dies_lets_go(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    command = [sys.executable, "-c", _HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            with pytest.raises(StoreLockedError) as caught:
                Store(folder)
            assert caught.value.owner == str(holder.pid)
        finally:
            holder.kill()
    opened_store(folder).close()


# --- damage ----------------------------------------------------------------------------------------


def test_a_flipped_byte_is_an_error_that_names_the_folder_or_changes_nothing(tmp_path: Path) -> None:
    store = opened_store(tmp_path / "state")
    rng = random.Random(1)
    store.write([(b"r%03d" % i, rng.randbytes(50), 1, 0) for i in range(300)])
    store.commit(1, b"meta")
    expected = content(store)
    store.close()
    tables = sorted(store.folder.glob("*.sst"))
    assert tables
    named = []
    for i in range(40):
        copy = tmp_path / f"flipped-{i}"
        live_copy(store.folder, copy)
        damaged = bytearray((copy / tables[0].name).read_bytes())
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (copy / tables[0].name).write_bytes(damaged)
        try:
            found = recovered_copy(copy, tmp_path / f"flipped-{i} opened")
        except StoreError as error:
            named.append(str(error).startswith(f"state in {tmp_path / f'flipped-{i} opened'}: "))
        else:
            assert found == ((1, b"meta"), expected)
    assert all(named)
    assert len(named) > 20


@pytest.mark.parametrize("pattern", ["CURRENT", "MANIFEST-*", "*.sst"])
@pytest.mark.parametrize("damage", ["gone", "empty", "garbage"])
def test_files_gone_or_overwritten_are_an_error_that_names_the_folder(
    tmp_path: Path, pattern: str, damage: str
) -> None:
    store = opened_store(tmp_path / "state")
    store.write([(b"r%03d" % i, b"x" * 50, 1, 0) for i in range(300)])
    store.commit(1, b"meta")
    store.close()
    (victim,) = store.folder.glob(pattern)
    size = victim.stat().st_size
    if damage == "gone":
        victim.unlink()
    else:
        victim.write_bytes(b"" if damage == "empty" else random.Random(1).randbytes(size))
    with pytest.raises(StoreCorruptionError, match=str(store.folder)):
        recovered_copy(store.folder, store.folder.with_name("state-copied"))


def test_values_that_cannot_be_are_told_apart(store: Store) -> None:
    store._database[b"r1"] = b"\1\0\0"
    store._database[b"r2"] = b"\1\0\0\0\7body"
    with pytest.raises(StoreCorruptionError, match="7231"):
        store.get([b"r1"])
    with pytest.raises(StoreVersionError, match="newer"):
        store.get([b"r2"])


@pytest.mark.parametrize("value", [b"\1", b"\1\0" + b"\0" * 12 + b"too long", b"\2\0" + b"\0" * 12])
def test_a_commit_record_that_cannot_be(tmp_path: Path, value: bytes) -> None:
    store = opened_store(tmp_path / "state")
    store._database[keys.META] = value
    store.close()
    again = Store(store.folder, LIMITS)
    with pytest.raises((StoreCorruptionError, StoreVersionError)):
        again.recover()
    again.close()


def test_an_undo_entry_that_cannot_be(store: Store) -> None:
    for value in (b"\1", b"\5\0\0\0\0\0r1"):
        with pytest.raises(StoreCorruptionError):
            list(undo_entries(store.folder, value))
