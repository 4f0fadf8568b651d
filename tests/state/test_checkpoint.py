"""The checkpointer: what it asks of residents, and in what order things become durable."""

import threading
import time
from pathlib import Path

import pytest

from railgun.state.checkpoint import Checkpointer
from railgun.state.errors import EpochOrderError, StoreError
from railgun.state.resident import Image
from railgun.state.rocks import StoreLimits
from railgun.state.store import Store
from reservoir.thread_executor import ThreadExecutor


class Notes:
    """A resident that holds a few items and notes what is asked of it."""

    def __init__(self, store: Store, name: bytes, items: int) -> None:
        self.store = store
        self.name = name
        self.items = items
        self.asked: list[tuple[str, int]] = []
        self.copied: list[Image] = []

    def set_epoch(self, epoch: int) -> None:
        self.asked.append(("set_epoch", epoch))
        self.left = self.items

    def pending(self, old_epoch: int, limit_bytes: int) -> list[Image]:
        self.asked.append(("pending", old_epoch))
        images = []
        while self.left and limit_bytes > 0:
            self.left -= 1
            images.append((b"r" + self.name + b"%d" % self.left, b"x" * 10, old_epoch, max(old_epoch - 1, 0)))
            limit_bytes -= 10
        return images

    def drain(self, limit_bytes: int | None = None) -> None:
        self.asked.append(("drain", 0))
        self.store.write(self.copied)
        self.copied = []

    def exhausted(self) -> bool:
        return not self.left and not self.copied

    def committed(self, epoch: int) -> None:
        self.asked.append(("committed", epoch))


@pytest.fixture
def store(tmp_path: Path):
    opened = Store(tmp_path / "state", StoreLimits(1 << 20, 1 << 20))
    opened.recover()
    yield opened
    opened.close()


def stepped(checkpointer: Checkpointer, limit_bytes: int = 20) -> int:
    """Steps until it is durable."""
    steps, until_s = 1, time.monotonic() + 60.0
    while not checkpointer.step(limit_bytes):
        steps += 1
        assert time.monotonic() < until_s
    return steps


def test_everything_is_written_bit_by_bit_then_committed(store: Store) -> None:
    first, second = Notes(store, b"a", 5), Notes(store, b"b", 3)
    checkpointer = Checkpointer(store, [first, second], ThreadExecutor())
    assert (checkpointer.epoch, checkpointer.is_in_flight) == (1, False)
    assert not checkpointer.step(1000)
    checkpointer.begin(b"meta")
    assert (checkpointer.epoch, checkpointer.is_in_flight) == (2, True)
    assert store.committed_epoch == 0
    first.copied = [(b"rcopy", b"y", 1, 0)]
    assert stepped(checkpointer) >= 7
    assert store.committed_epoch == 1
    assert not checkpointer.is_in_flight
    assert len(store.scan(b"r", b"s", 99)) == 9
    assert first.asked[:2] == [("set_epoch", 1), ("set_epoch", 2)]
    assert [asked for asked in first.asked if asked[0] == "pending"] == [("pending", 1)] * 4
    assert ("drain", 0) in first.asked
    assert first.asked[-1] == second.asked[-1] == ("committed", 1)
    checkpointer.close()


def test_one_after_the_other_and_one_at_a_time(store: Store) -> None:
    checkpointer = Checkpointer(store, [Notes(store, b"a", 2)], ThreadExecutor())
    for epoch in (1, 2, 3):
        checkpointer.begin(b"%d" % epoch)
        with pytest.raises(EpochOrderError, match=f"epoch {epoch} is still in flight"):
            checkpointer.begin(b"")
        checkpointer.finish()
        assert store.committed_epoch == epoch
    checkpointer.close()


def test_the_commit_waits_for_what_makes_its_references_durable(store: Store) -> None:
    checkpointer = Checkpointer(store, [Notes(store, b"a", 2)], ThreadExecutor())
    may_go_on = threading.Event()

    def make_durable() -> bytes:
        assert may_go_on.wait(30)
        return b" and what came of it"

    checkpointer.begin(b"meta", make_durable)
    for _ in range(50):
        assert not checkpointer.step(1000)
    assert checkpointer.is_committing
    assert store.committed_epoch == 0
    may_go_on.set()
    checkpointer.finish()
    assert store.committed_epoch == 1
    checkpointer.close()
    store.close()
    again = Store(store.folder, StoreLimits(1 << 20, 1 << 20))
    assert again.recover() == (1, b"meta and what came of it")
    again.close()


def test_what_fails_in_the_other_thread_comes_out_of_every_step_and_nothing_commits(store: Store) -> None:
    checkpointer = Checkpointer(store, [Notes(store, b"a", 200)], ThreadExecutor())

    def make_durable() -> bytes:
        raise OSError("the segment could not be synced")

    checkpointer.begin(b"meta", make_durable)
    for _ in range(3):
        with pytest.raises(OSError, match="segment"):
            stepped(checkpointer)
    assert checkpointer.is_in_flight
    assert store.committed_epoch == 0
    checkpointer.close()


def test_a_commit_that_fails_comes_out_of_every_step(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpointer = Checkpointer(store, [Notes(store, b"a", 2)], ThreadExecutor())
    failure = StoreError(store.folder, "sync", "IO error", "")

    def fail(epoch: int, meta: bytes) -> None:
        raise failure

    monkeypatch.setattr(store, "commit", fail)
    checkpointer.begin(b"meta")
    for _ in range(3):
        with pytest.raises(StoreError) as caught:
            stepped(checkpointer)
        assert caught.value is failure
    checkpointer.close()


def test_what_a_commit_leaves_behind_is_cleaned_up_in_steps(store: Store) -> None:
    checkpointer = Checkpointer(store, [Notes(store, b"a", 1)], ThreadExecutor())
    checkpointer.begin(b"")
    checkpointer.finish()
    store.write([(b"r%04d" % i, None, 2, 0) for i in range(1000)])
    store.write([(b"s%04d" % i, None, 2, 0) for i in range(1000)])
    checkpointer.begin(b"")
    stepped(checkpointer)
    left = [len(store.scan(b"r", b"t", 9999))]
    while left[-1] > 1:
        checkpointer.step(1000)
        left.append(len(store.scan(b"r", b"t", 9999)))
    assert left[0] == 2001
    assert len(left) > 2
    checkpointer.close()


def test_it_goes_on_from_the_last_commit(store: Store) -> None:
    checkpointer = Checkpointer(store, [], ThreadExecutor())
    checkpointer.begin(b"")
    checkpointer.finish()
    checkpointer.close()
    notes = Notes(store, b"a", 0)
    again = Checkpointer(store, [notes], ThreadExecutor())
    assert again.epoch == 2
    assert notes.asked == [("set_epoch", 2)]
    again.close()
