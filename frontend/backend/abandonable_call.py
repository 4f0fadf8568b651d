"""Runs a call to the broker in a thread that the caller can abandon, since a broker that is away may never answer.

The start of a cluster's front-end, its end, its changes of the catalogue and looks at the cluster are such calls.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def call_abandonably(call: Callable[[], T]) -> T:
    """Make a call in a daemon thread and return its result. If this is cancelled, nothing waits for the thread."""
    made: Future[T] = Future()
    # The future cannot be cancelled from here on: a caller that leaves cancels only its waiting.
    made.set_running_or_notify_cancel()

    def run() -> None:
        try:
            made.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            made.set_exception(error)

    threading.Thread(target=run, name="abandonable", daemon=True).start()
    return await asyncio.wrap_future(made)
