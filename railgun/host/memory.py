"""One limit for the memory of all tasks of an engine, divided among them: each gets settings of its own."""

from collections.abc import Iterable
from dataclasses import replace

from railgun.task.settings import MIB, TaskSettings

LIMIT_BYTES = 2 << 30

# Of what is free when tasks are opened; the rest is for streams that are yet to come.
_SHARE, _OF = 3, 4
_CACHE_BYTES_MIN = MIB
# What one operation on a tree may need at once.
_PAGE_CACHE_BYTES_MIN = 4 * MIB


def cache_bytes(settings: TaskSettings) -> int:
    """What the caches and buffers of one task may take together."""
    return sum(_caches(settings).values())


class MemoryShares:
    """settings: the most that one task gets.  limit_bytes: of the caches and buffers of all of them together.

    Tasks that are opened together, all of a folder's when it is opened, share three quarters of what is free
    evenly: a stream that is created later has something left until the next start divides anew.  Where a share is less
    than a task's most, its largest caches shrink first.  No task gets less than 8 MiB, whatever the limit says.
    """

    def __init__(self, settings: TaskSettings, limit_bytes: int) -> None:
        self._settings, self._free_bytes = settings, limit_bytes

    def take(self, tasks: int) -> TaskSettings:
        """The settings of each of so many tasks that are about to be opened."""
        settings = self._settings
        share_bytes = max(0, self._free_bytes) * _SHARE // _OF // max(1, tasks)
        if share_bytes < cache_bytes(settings):
            settings = replace(settings, **_within(_caches(settings), share_bytes))
        self._free_bytes -= tasks * cache_bytes(settings)
        return settings

    def give_back(self, closed: Iterable[TaskSettings]) -> None:
        """Tasks that were opened with these settings are gone."""
        self._free_bytes += sum(map(cache_bytes, closed))


def _within(caches: dict[str, int], share_bytes: int) -> dict[str, int]:
    """Caches that shrink until all of them fit: the largest first, to the size of the next, and so on."""
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
