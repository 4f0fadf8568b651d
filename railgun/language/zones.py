"""Makes tables of time zones from the files of the pinned `tzdata` package, never from those of the machine.

Every expression that names a zone carries its table. A digest tells the tables of different releases apart.
"""

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from railgun.language.tzif import Offsets, offsets_of

_DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone: its offsets from UTC, and when each begins.

    offsets: the offsets in s and the times at which they begin, as `tzif.Offsets`. The first offset holds at all times
        before the first change, the last one at all times after the last change.
    digest: a digest of the offsets, in hexadecimal. Two zones are equal where their names and digests are.
    """

    name: str
    digest: str
    offsets: Offsets = field(compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The offsets, as control records carry them."""
        before_s, changes = self.offsets
        return {"before": before_s, "changes": [list(change) for change in changes]}


Zones = Callable[[str], Zone | None]
"""A function that finds the zone of a name; None if there is none."""


def zone_of(name: str, offsets: Offsets) -> Zone:
    """The zone with these offsets."""
    digest = hashlib.sha256(json.dumps(offsets).encode()).hexdigest()
    return Zone(name, digest[:_DIGEST_LENGTH], offsets)


def zone_from_json(name: str, body: Mapping[str, Any]) -> Zone:
    """The zone that `Zone.to_json` wrote. Raises ValueError."""
    try:
        changes = tuple((int(moment), int(offset_s)) for moment, offset_s in body["changes"])
        offsets = int(body["before"]), changes
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no table of the time zone {name[:80]!r}") from error
    if any(one[0] >= other[0] for one, other in itertools.pairwise(changes)):
        raise ValueError(f"the table of the time zone {name[:80]!r} is not in order")
    return zone_of(name, offsets)


@functools.cache
def zone_names() -> frozenset[str]:
    """The names of all zones that the pinned package has."""
    text = resources.files("tzdata").joinpath("zones").read_text("utf-8")
    return frozenset(text.split())


@functools.cache
def pinned_zone(name: str) -> Zone | None:
    """Return a zone of the pinned package; None if the package has none of this name."""
    if name not in zone_names():
        return None
    return zone_of(name, offsets_of(_file(name)))


def _file(name: str) -> bytes:
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def is_outdated(zone: Zone) -> bool:
    """Whether the pinned package now has a different table for the zone, or none."""
    return pinned_zone(zone.name) != zone
