"""What is done for a change before it is made, while events go on."""

from collections.abc import Callable, Iterable
from concurrent.futures import wait
from typing import NamedTuple

from reservoir.prefetch import Ahead


class Foresight(NamedTuple):
    """What one task will need. ahead: chunks that are being decoded.  prepare: to be called once, on any thread, with
    nothing held: makes what takes long."""

    ahead: list[Ahead]
    prepare: Callable[[], None]


def await_foreseen(foreseen: Iterable[Foresight], timeout_s: float) -> None:
    """Prepare, and wait for what is read ahead; no longer than this."""
    ahead: list[Ahead] = []
    for each in foreseen:
        each.prepare()
        ahead += each.ahead
    wait(ahead, timeout_s)
