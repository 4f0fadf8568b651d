"""Threads beside the main one: order, bounds, errors, and that they end."""

import threading
import time
from collections.abc import Iterator

import pytest

from railgun.cli.offline import Ahead, Behind
from tests.frontend.serving import until


def test_items_come_in_order() -> None:
    with Ahead(iter(range(100)), 3) as ahead:
        assert list(ahead) == list(range(100))


def test_the_producer_runs_ahead_but_not_far() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for n in range(100):
            made.append(n)
            yield n

    with Ahead(items(), 3) as ahead:
        assert next(iter(ahead)) == 0
        until(lambda: len(made) >= 5)
        time.sleep(0.3)
        # One taken, three waiting, one in the producer's hand.
        assert len(made) == 5


def test_the_producers_error_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    found = []
    with pytest.raises(ValueError, match="broken"), Ahead(items(), 3) as ahead:
        found.extend(ahead)
    with Ahead(items(), 3) as ahead:
        assert next(iter(ahead)) == 1


def test_leaving_early_ends_the_producer() -> None:
    threads = set(threading.enumerate())
    with Ahead(iter(range(10**9)), 2) as ahead:
        assert next(iter(ahead)) == 0
    assert set(threading.enumerate()) <= threads


def test_an_interrupt_while_the_producer_starts_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    threads = set(threading.enumerate())
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), Ahead(iter(range(10**9)), 2) as ahead:
        next(iter(ahead))
    assert set(threading.enumerate()) <= threads


def test_what_is_put_is_consumed_in_order_before_the_block_ends() -> None:
    found: list[int] = []

    def consume(item: int) -> None:
        time.sleep(0.001)
        found.append(item)

    with Behind(consume, 2) as behind:
        for n in range(50):
            behind.put(n)
    assert found == list(range(50))


def _fail(item: int) -> None:
    raise OSError(f"item {item}")


def test_the_consumers_error_comes_out_of_the_block() -> None:
    with pytest.raises(OSError, match="item 1"), Behind(_fail, 2) as behind:
        behind.put(1)


def test_the_consumers_error_stops_whoever_puts() -> None:
    def block() -> None:
        with Behind(_fail, 2) as behind:
            for n in range(10**6):
                behind.put(n)

    with pytest.raises(OSError, match="item 0"):
        block()


def test_after_an_error_of_the_block_nothing_more_is_consumed() -> None:
    found: list[int] = []
    started, go = threading.Event(), threading.Event()

    def consume(item: int) -> None:
        started.set()
        go.wait(10)
        found.append(item)

    def block() -> None:
        with Behind(consume, 5) as behind:
            for n in range(4):
                behind.put(n)
            started.wait(10)
            threading.Timer(0.2, go.set).start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert found == [0]
