"""A call that waits for the broker can be left: a broker that is away answers no sooner for being waited for."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def left_behind(call: Callable[[], T]) -> T:
    """What a call gives, made in a thread that nobody waits for once this is cancelled: not even the process's end."""
    made: Future[T] = Future()
    # From here on whoever leaves cancels only the waiting.
    made.set_running_or_notify_cancel()

    def run() -> None:
        try:
            made.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            made.set_exception(error)

    threading.Thread(target=run, name="starting", daemon=True).start()
    return await asyncio.wrap_future(made)
