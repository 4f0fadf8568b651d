"""A call that whoever waits for it may leave: a broker that is away answers no sooner for being waited for."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def left_behind(call: Callable[[], T]) -> T:
    """What a call gives, made in a thread that nobody waits for once this is cancelled: not even the process's end."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[T] = loop.create_future()

    def settle(result: Future[T]) -> None:
        if made.cancelled():
            return
        error = result.exception()
        if error is None:
            made.set_result(result.result())
        else:
            made.set_exception(error)

    def run() -> None:
        result: Future[T] = Future()
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            result.set_exception(error)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=run, name="starting", daemon=True).start()
    return await made
