"""A disk that is full, as the sink of a host meets it."""

import errno
from collections.abc import Callable
from typing import Any

from railgun.host.reply_sink import ReplySink
from reservoir.errors import StorageFailedError


class SinkBesideDisk:
    """Stands in for the sink of a host: while the disk is full no checkpoint becomes durable."""

    def __init__(self, sink: ReplySink, is_full: Callable[[], bool]) -> None:
        self._sink, self._is_full = sink, is_full

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    def wait(self, before_offset: int) -> None:
        if self._is_full():
            raise StorageFailedError("a segment", "a write", OSError(errno.ENOSPC, "No space left on device"))
        self._sink.wait(before_offset)
