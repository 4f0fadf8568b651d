"""What the clocks of time zones are ahead of UTC, by the files of the pinned `tzdata` package.

Python's own reader is handed such a file: by a name it would look among the machine's first.
"""

import functools
from datetime import UTC, datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Before it no zone has changed yet, and after it none changes any more, whatever its rule says.
_FIRST, _LAST = datetime(1800, 1, 1, tzinfo=UTC), datetime(2100, 12, 31, 23, 59, 59, tzinfo=UTC)


@functools.cache
def zone_names() -> frozenset[str]:
    """All zones of the package."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("utf-8").split())


@functools.cache
def _zone(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def offset_ms(name: str, time_ms: int) -> int:
    """How far the clocks of a zone are ahead of UTC at a time."""
    first, last = ((end - _EPOCH) // timedelta(milliseconds=1) for end in (_FIRST, _LAST))
    moment = _EPOCH + timedelta(milliseconds=min(max(time_ms, first), last))
    offset = moment.astimezone(_zone(name)).utcoffset()
    assert offset is not None
    return offset // timedelta(milliseconds=1)
