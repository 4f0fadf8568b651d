"""Who a front-end is: its name, and the number and incarnation by which replies find back to it."""

import hashlib
import os
import secrets
import socket
import time
from dataclasses import dataclass, field

_NUMBER_BITS = 31


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """One run of a front-end. name: no two that run at the same time may share it.

    incarnation: ms since 1970 at the start; replies to an older run are dropped.  is_passing: the name was made up:
    nobody will go by it again.
    """

    name: str
    incarnation: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    is_passing: bool = False

    @property
    def number(self) -> int:
        """What records name it by: 31 bits of a hash of the name."""
        digest = hashlib.blake2b(self.name.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 64 - _NUMBER_BITS


def made_up() -> FrontEnd:
    """One that nobody has named."""
    return FrontEnd(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}", is_passing=True)
