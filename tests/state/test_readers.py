"""Reads shared among threads: the values in the order of the keys, and errors as they come."""

import threading
from pathlib import Path
from typing import Any

import pytest

from railgun.state.errors import StoreError
from railgun.state.readers import Readers
from railgun.state.rocks import StoreLimits
from railgun.state.store import Store
from reservoir.executor import Executor
from reservoir.inline_executor import InlineExecutor
from reservoir.thread_executor import ThreadExecutor


class Database:
    """Answers with the keys themselves, None for those that end in 7; notes how many were asked for, by whom."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.lists = 0
        self.threads: set[int] = set()

    def get(self, wanted: list[bytes] | bytes) -> list[bytes | None] | bytes | None:
        """As RocksDB's: of a list without the interpreter's lock, of a single key with it."""
        keys = [wanted] if isinstance(wanted, bytes) else wanted
        self.asked.append(len(keys))
        self.lists += isinstance(wanted, list)
        self.threads.add(threading.get_ident())
        if b"bad" in keys:
            raise Exception("Corruption: a block")
        found = [None if key.endswith(b"7") else key for key in keys]
        return found[0] if isinstance(wanted, bytes) else found


@pytest.mark.parametrize(
    "executor", [ThreadExecutor(), InlineExecutor()], ids=lambda each: type(each).__name__
)
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 16, 17, 511, 512, 513, 4_096])
def test_values_in_the_order_of_the_keys(threads: int, n: int, executor: Executor) -> None:
    wanted = [b"%d" % k for k in range(n)]
    readers, database = Readers([executor.lane("reader") for _ in range(threads - 1)]), Database()
    found = readers.get(database, wanted)  # type: ignore[arg-type]
    readers.close()
    assert found == [None if key.endswith(b"7") else key for key in wanted]
    assert sum(database.asked) == n
    assert max(database.asked, default=0) <= 512
    # Few keys are read one by one, which keeps the interpreter's lock.
    assert len(database.asked) == (n if n <= 16 else -(-n // 512))
    assert database.lists == (0 if n <= 16 else len(database.asked))


def test_few_keys_are_read_with_the_interpreters_lock(tmp_path: Path) -> None:
    """As they are found: the binding reads a single key so, and gives None for one that is not there."""
    store = Store(tmp_path, StoreLimits(1 << 20, 1 << 20))
    store._database[b"a"], store._database[b"c"] = b"1", b"3"
    assert store.get_values([b"a", b"b", b"c"]) == [b"1", None, b"3"]
    assert store.get_values([b"c"] * 17) == [b"3"] * 17
    store.close()


@pytest.mark.parametrize(("n", "bad"), [(1_000, 0), (1_000, 600), (1_000, 999), (3, 2)])
def test_an_error_of_any_thread_is_the_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, bad: int
) -> None:
    store = Store(tmp_path, StoreLimits(1 << 20, 1 << 20))
    own = store._database
    wanted = [b"%d" % k for k in range(n)]
    wanted[bad] = b"bad"
    monkeypatch.setattr(store, "_database", Database())
    with store.reading_with(ThreadExecutor(), 3), pytest.raises(StoreError, match="a block"):
        store.get_values(wanted)
    monkeypatch.setattr(store, "_database", own)
    store.close()


def test_only_in_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, StoreLimits(1 << 20, 1 << 20))
    own, database = store._database, Database()
    monkeypatch.setattr(store, "_database", database)
    wanted: list[Any] = [b"%d" % k for k in range(1_000)]
    with store.reading_with(ThreadExecutor(), 2):
        store.get_values(wanted)
    assert len(database.threads) == 2
    database.threads.clear()
    store.get_values(wanted)
    assert database.threads == {threading.get_ident()}
    assert sorted(database.asked) == [488, 488, 512, 512]
    monkeypatch.setattr(store, "_database", own)
    store.close()
