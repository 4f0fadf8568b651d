"""Makes changes of the catalogue for `RunningCluster`, one after another, without waiting long for a broker that is
away.

A change that had not begun when its caller stopped waiting never takes effect.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from frontend.backend.abandonable_call import call_abandonably
from frontend.problems import ProblemError, refusal
from railgun.registry.cancellation import CancellationToken

T = TypeVar("T")

CHANGE_S = 10.0
"""How long a change waits for a broker that does not answer."""
_LOOK_S = 0.25


class Changes:
    """Makes changes one after another. Used in one event loop.

    away: returns why the broker does not answer; None if nothing is known to be wrong.
    limit_s: how long a change waits for a broker that is away.
    """

    def __init__(self, away: Callable[[], str | None], limit_s: float = CHANGE_S) -> None:
        self._away, self._limit_s = away, limit_s
        # One thread at a time. If a change is left behind, the next ones wait in this loop and use no threads.
        self._turn = asyncio.Lock()

    async def make(self, change: Callable[[CancellationToken], T]) -> T:
        """Make a change and return its result.

        Raises the change's exceptions; ProblemError (503) if the broker is away for too long.
        """
        cancellation, begun_s = CancellationToken(), monotonic()
        made = asyncio.ensure_future(self._in_turn(change, cancellation))
        made.add_done_callback(_heard)
        while True:
            done, _ = await asyncio.wait({made}, timeout=_LOOK_S)
            if done:
                return made.result()
            away = self._away()
            if away is not None and monotonic() - begun_s >= self._limit_s:
                raise unfinished(not cancellation.withdraw(), away)

    async def _in_turn(self, change: Callable[[CancellationToken], T], cancellation: CancellationToken) -> T:
        async with self._turn:
            cancellation.check()
            return await call_abandonably(lambda: change(cancellation))


def unfinished(has_started: bool, reason: str) -> ProblemError:
    """Return the exception for a change that the broker did not confirm. reason: what is wrong with the broker."""
    if has_started:
        return refusal(
            503,
            "the change was handed to the broker, which has not confirmed it: it may still take effect, once the "
            f"broker answers again. See with GET, or send the same again, which is harmless ({reason})",
        )
    return refusal(
        503, f"nothing was changed: the broker does not answer. Send it again when it does ({reason})"
    )


def _heard(made: "asyncio.Task[Any]") -> None:
    """Take the exception of a change, so that asyncio logs nothing if nobody waits for the change any more."""
    if not made.cancelled():
        made.exception()
