"""The errors of pages: a pool too small for one operation, a missing page, a broken map."""

from railgun.state.errors import StateError
from reservoir.errors import DAMAGE_REMEDY


class PoolTooSmallError(StateError):
    """The pages that one operation needs do not fit into the pool together.

    limit_bytes: what the pool may use; needed_bytes: a limit that would do, as far as is known.
    """

    def __init__(self, limit_bytes: int, needed_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.needed_bytes = needed_bytes
        super().__init__(
            f"a page pool of {limit_bytes} bytes is too small for one operation. "
            f"Raise the limit of the state's memory to {needed_bytes} bytes or more"
        )


class PageMissingError(StateError):
    """A page that something refers to is not stored, or what is stored cannot be a page."""

    def __init__(self, key: bytes, reason: str) -> None:
        self.key = key
        super().__init__(f"page {key.hex()}: {reason}. {DAMAGE_REMEDY}")


class BrokenPageError(StateError):
    """A kernel met an impossible state: a count below zero, a page of the wrong level. Nothing was changed."""

    def __init__(self, status: int) -> None:
        super().__init__(
            f"a kernel on pages answered {status}: the state contradicts itself. Stop, keep the folder for a "
            "report, and restore the data folder from a copy"
        )
