"""Tables of time zones: those of the pinned package, as Python's own reader reads them."""

import io
import json
import random
import struct
import zoneinfo
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from railgun.language import zones
from railgun.language.tzif import LAST_YEAR, Offsets, offsets_of
from railgun.language.zones import Zone, pinned_zone, zone_from_json, zone_names, zone_of
from tests.oracle.zones import offset_ms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
END_S = int((datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC) - EPOCH).total_seconds())
LISBON = "Europe/Lisbon"


def at(offsets: Offsets, moment: int) -> int:
    before_s, changes = offsets
    place = bisect_right([change[0] for change in changes], moment)
    return changes[place - 1][1] if place else before_s


def wrong(data: bytes, offsets: Offsets) -> list[int]:
    """The moments at which these are not the offsets of a zone's file: each change, and some at random."""
    right = zoneinfo.ZoneInfo.from_file(io.BytesIO(data))
    rng = random.Random(1)
    moments = [rng.randrange(-6_000_000_000, END_S) for _ in range(60)]
    moments += [change[0] + beside for change in offsets[1] for beside in (-1, 0, 1)]
    return [
        moment
        for moment in moments
        if moment < END_S
        and timedelta(seconds=at(offsets, moment))
        != (EPOCH + timedelta(seconds=moment)).astimezone(right).utcoffset()
    ]


def test_every_zone_is_read_as_python_reads_it() -> None:
    assert len(zone_names()) > 500
    for name in sorted(zone_names()):
        data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
        zone = pinned_zone(name)
        assert zone is not None
        assert not wrong(data, zone.offsets), name


def _file(rule: str, offset_s: int, version: bytes = b"3") -> bytes:
    """A zone without changes but those of its rule."""
    header = struct.pack(">4sc15x6I", b"TZif", version, 0, 0, 0, 0, 1, 4)
    return 2 * (header + struct.pack(">iBB", offset_s, 0, 0) + b"STD\0") + f"\n{rule}\n".encode()


@pytest.mark.parametrize(
    ("rule", "offset_s"),
    [
        ("STD3", -10_800),
        ("", 3_600),
        ("STD3SSS,M3.5.0/1,M10.1.6", -10_800),
        ("STD-4:30:10SSS-5,J60/2,J300/2:30", 16_210),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", -7_200),
        ("<+03>-3<+04>,M3.4.4/50,M10.4.4/50", 10_800),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", 3_600),
    ],
)
def test_rules_are_followed(rule: str, offset_s: int) -> None:
    data = _file(rule, offset_s)
    offsets = offsets_of(data)
    changes = [change for change in offsets[1] if change[0] > 0]
    assert ("," in rule) == (len(changes) >= 2 * (LAST_YEAR - 1970))
    # Before its first change a rule holds too, for Python; files begin with what was before.
    assert [moment for moment in wrong(data, offsets) if changes and moment >= changes[0][0]] == []


def test_days_are_counted_from_nought_or_without_leap_days() -> None:
    """Python's reader counts both otherwise; no zone has such a rule."""
    _, changes = offsets_of(_file("STD0SSS,59/1,J59/2", 0))
    moments = [EPOCH + timedelta(seconds=moment) for moment, _ in changes]
    # The day of number 59 is the 60th; J59 is always the last of February that has 28.
    first, last, leap = moments[0], moments[1], [each for each in moments if each.year == 1972]
    assert (first.isoformat(), last.isoformat()) == ("1970-03-01T01:00:00+00:00", "1971-02-28T01:00:00+00:00")
    assert [each.isoformat() for each in leap] == ["1972-02-28T01:00:00+00:00", "1972-02-29T01:00:00+00:00"]


@pytest.mark.parametrize(
    "data", [b"", b"TZif", _file("STD3", 0, b"\0"), _file("STD3", 0)[:70], _file("nonsense", 0)]
)
def test_what_is_no_file_of_a_zone_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="zone"):
        offsets_of(data)


def test_a_table_is_read_as_it_was_written() -> None:
    zone = pinned_zone(LISBON)
    assert zone is not None
    read = zone_from_json(LISBON, json.loads(json.dumps(zone.to_json())))
    assert (read, read.offsets) == (zone, zone.offsets)


@pytest.mark.parametrize(
    "table", [{}, {"before": 0}, {"before": 0, "changes": [[1]]}, {"before": 0, "changes": [[2, 0], [1, 1]]}]
)
def test_what_is_no_table_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="zone"):
        zone_from_json(LISBON, table)


def test_zones_are_told_apart_by_what_they_say() -> None:
    one, other = zone_of(LISBON, (0, ((5, 3_600),))), zone_of(LISBON, (0, ((6, 3_600),)))
    assert one != other
    assert one == zone_of(LISBON, (0, ((5, 3_600),)))
    assert one != zone_of("Portugal", (0, ((5, 3_600),)))


# --- the machine's zones


@pytest.fixture
def other_machine(tmp_path: Path) -> Iterator[Path]:
    """A machine whose Lisbon has the clocks of Tokyo."""
    file = tmp_path / LISBON
    file.parent.mkdir()
    file.write_bytes(resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes())
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(tmp_path)])
    pinned_zone.cache_clear()
    yield tmp_path
    zoneinfo.reset_tzpath(before)
    pinned_zone.cache_clear()


def _is_the_packages(zone_by_name: Callable[[str], Zone | None]) -> bool:
    zone = zone_by_name(LISBON)
    assert zone is not None
    times_ms = [86_400_000 * day for day in range(0, 20_000, 50)]
    return all(1_000 * at(zone.offsets, time // 1_000) == offset_ms(LISBON, time) for time in times_ms)


def test_the_machines_zones_are_not_asked(other_machine: Path) -> None:
    assert _is_the_packages(pinned_zone)


def test_the_machines_zones_would_be_noticed(other_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zones, "_file", lambda name: (Path(zoneinfo.TZPATH[0]) / name).read_bytes())
    assert not _is_the_packages(pinned_zone)
