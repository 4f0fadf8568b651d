"""Changes of the catalogue, one after another. Nobody waits long for a broker that is away: what had not begun by then
never takes effect."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from frontend.kafka.left_behind import left_behind
from frontend.problems import ProblemError, refusal
from railgun.registry.cancellation import CancellationToken

T = TypeVar("T")

CHANGE_S = 10.0
"""How long a change waits for a broker that does not answer."""
_LOOK_S = 0.25


class Changes:
    """Used in one event loop. away: why the broker is known not to answer; None while nothing is known to be wrong."""

    def __init__(self, away: Callable[[], str | None], limit_s: float = CHANGE_S) -> None:
        self._away, self._limit_s = away, limit_s
        # One thread at a time: one that was left behind keeps the next ones waiting, not more threads busy.
        self._turn = asyncio.Lock()

    async def make(self, change: Callable[[CancellationToken], T]) -> T:
        """What a change gives. Raises what it raises; ProblemError (503) where the broker is away for too long."""
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
            return await left_behind(lambda: change(cancellation))


def unfinished(has_started: bool, reason: str) -> ProblemError:
    """The problem of a change that the broker did not confirm. reason: what is wrong with the broker."""
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
    """What became of one that nobody waits for any more."""
    if not made.cancelled():
        made.exception()
