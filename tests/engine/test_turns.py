"""The lock is given in the order asked for, and survives a waiter that gives up."""

import threading
import time

import pytest

from railgun.engine.turns import FairLock


def test_a_thread_that_loops_over_it_keeps_nobody_out() -> None:
    lock, stop = FairLock(), threading.Event()

    def loop() -> None:
        while not stop.is_set():
            with lock:
                time.sleep(0.002)

    looping = threading.Thread(target=loop)
    looping.start()
    try:
        for _ in range(50):
            with lock:
                pass
    finally:
        stop.set()
        looping.join()
    assert lock.acquire(blocking=False)


def test_turns_come_in_the_order_asked() -> None:
    lock, order = FairLock(), list[int]()
    lock.acquire()

    def wait(number: int) -> None:
        with lock:
            order.append(number)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        while len(lock._waiting) <= number:
            time.sleep(0.001)
    assert not lock.acquire(blocking=False)
    lock.release()
    for thread in threads:
        thread.join()
    assert order == list(range(5))


def test_a_waiter_that_is_interrupted_leaves_the_lock_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FairLock()
    lock.acquire()

    def interrupted(self: threading.Event, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Event, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lock.acquire()
    lock.release()
    assert lock.acquire(blocking=False)
