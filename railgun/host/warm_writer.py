"""What a host needs of whoever writes `warm` records to its task's log."""

from collections.abc import Sequence
from typing import Protocol

from railgun.catalog.changes import Warm
from railgun.host.place import Place


class WarmWriter(Protocol):
    """Called again until the task has met the records in its log."""

    def __call__(self, place: Place, due: Sequence[Warm]) -> None:
        """Write the `warm` records that are due for the task of a place."""
