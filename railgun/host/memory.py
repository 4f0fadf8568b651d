"""Divides one memory limit among all tasks of an engine or a unit. Each task gets its own settings. It does no I/O."""

from collections.abc import Iterable
from dataclasses import replace

from railgun.task.settings import MIB, TaskSettings

LIMIT_BYTES = 2 << 30

# The share of the free memory that goes to tasks when they are opened. The rest is left for later streams.
_SHARE, _OF = 3, 4
_CACHE_BYTES_MIN = MIB
# One operation on a tree may need this much at once.
_PAGE_CACHE_BYTES_MIN = 4 * MIB


def cache_bytes(settings: TaskSettings) -> int:
    """Return how many bytes the caches and buffers of one task may take together."""
    return sum(_caches(settings).values())


class MemoryShares:
    """Divides a memory limit among tasks.

    settings: the most that one task gets.
    limit_bytes: the limit for the caches and buffers of all tasks together.

    Tasks that are opened together share three quarters of the free memory evenly. The rest is left for streams that
    are created later, until the next start divides all of it again. If a share is less than a task's most, its
    largest caches shrink first. No task gets less than 8 MiB, whatever the limit is.
    """

    def __init__(self, settings: TaskSettings, limit_bytes: int) -> None:
        self._settings, self._free_bytes = settings, limit_bytes
        self._tasks = 0

    def take(self, tasks: int, most: int = 0) -> TaskSettings:
        """Return the settings for each of `tasks` tasks that are about to be opened together, and reserve their
        memory.

        most: how many tasks there may come to be, with those that are open. Tasks that are still to come are left a
            share.
        """
        settings = self._settings
        sharing = max(1, tasks, most - self._tasks)
        share_bytes = max(0, self._free_bytes) * _SHARE // _OF // sharing
        if share_bytes < cache_bytes(settings):
            settings = replace(settings, **_within(_caches(settings), share_bytes))
        self._free_bytes -= tasks * cache_bytes(settings)
        self._tasks += tasks
        return settings

    def give_back(self, closed: Iterable[TaskSettings]) -> None:
        """Release the memory of tasks that were opened with these settings and are closed now."""
        for settings in closed:
            self._free_bytes += cache_bytes(settings)
            self._tasks -= 1


def _within(caches: dict[str, int], share_bytes: int) -> dict[str, int]:
    """Shrink caches until all of them fit into a share: the largest first, down to the size of the
    next, and so on.
    """
    found: dict[str, int] = {}
    for left, name in zip(range(len(caches), 0, -1), sorted(caches, key=lambda name: caches[name])):
        even_bytes = (share_bytes - sum(found.values())) // left
        found[name] = min(caches[name], max(_least_bytes(name), even_bytes))
    return found


def _caches(settings: TaskSettings) -> dict[str, int]:
    return {
        "row_cache_bytes": settings.row_cache_bytes,
        "page_cache_bytes": settings.page_cache_bytes,
        "chunk_cache_bytes": settings.chunk_cache_bytes,
        "block_cache_bytes": settings.block_cache_bytes,
        "write_buffer_bytes": settings.write_buffer_bytes,
    }


def _least_bytes(name: str) -> int:
    return _PAGE_CACHE_BYTES_MIN if name == "page_cache_bytes" else _CACHE_BYTES_MIN
