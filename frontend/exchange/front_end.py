"""The identity of a front-end: its name, and the number and incarnation by which replies find their way to it.

It does no I/O.
"""

import hashlib
import os
import secrets
import socket
import time
from dataclasses import dataclass, field

_NUMBER_BITS = 31


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """One run of a front-end.

    name: no two front-ends that run at the same time may share it.
    incarnation: ms since 1970 at the start. Replies to an older run are dropped.
    is_passing: the name was made up, and no later run will have it.
    """

    name: str
    incarnation: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    is_passing: bool = False

    @property
    def number(self) -> int:
        """The number by which records name the front-end: 31 bits of a hash of its name."""
        digest = hashlib.blake2b(self.name.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 64 - _NUMBER_BITS


def made_up() -> FrontEnd:
    """Return a front-end whose name is made up."""
    return FrontEnd(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}", is_passing=True)
