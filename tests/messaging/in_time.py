"""An end to what librdkafka waits for in C, where no limit of a test's is heard of."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

_LIMIT_S = 40.0


def in_time(ask: Callable[[], T], attempts: int = 3) -> T:
    """What a question gives that may be asked anew where it does not come back. Positions of a transaction do not,
    whatever limit they are given, where a busy broker was out of its cluster for a moment (2.16; its issue 5456).
    """
    for _ in range(attempts):
        answer: Future[T] = Future()
        threading.Thread(target=_ask, args=(ask, answer), daemon=True).start()
        try:
            return answer.result(_LIMIT_S)
        except TimeoutError:
            continue
    raise AssertionError(f"no answer within {_LIMIT_S:g} s; attempts: {attempts}")


def _ask(ask: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(ask())
    except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
        answer.set_exception(error)
