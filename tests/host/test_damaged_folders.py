"""A task's folder that is damaged: another node's data takes its place, once that is there, and not before."""

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from railgun.cluster.donors import Donor, Donors
from railgun.host.data_folder import fetching_folder
from railgun.host.fetcher import FetchEnd, FetchOrder
from railgun.task.errors import DataDamagedError, LogGapError
from tests.host.fetched_folder import mark_verified
from tests.host.test_source import _DONOR, _MANY, _Copy, _donors, _no_replies
from tests.host.test_source import copy as copy
from tests.unit.local_units import SMALL

_GARBAGE = random.Random(1).randbytes(4_096)
_LITTLE = 16


def _one(folder: Path, pattern: str) -> Path:
    """The first file that matches, which has something in it."""
    return next(path for path in sorted(folder.glob(pattern)) if path.stat().st_size)


def _gone(pattern: str) -> Callable[[Path], object]:
    return lambda folder: _one(folder, pattern).unlink()


def _emptied(pattern: str) -> Callable[[Path], object]:
    return lambda folder: _one(folder, pattern).write_bytes(b"")


def _overwritten(pattern: str) -> Callable[[Path], object]:
    def overwrite(folder: Path) -> None:
        place = _one(folder, pattern)
        place.write_bytes(_GARBAGE[: place.stat().st_size])

    return overwrite


def _cut(pattern: str) -> Callable[[Path], object]:
    def cut(folder: Path) -> None:
        place = _one(folder, pattern)
        place.write_bytes(place.read_bytes()[:-_LITTLE])

    return cut


def _points_nowhere(folder: Path) -> None:
    (folder / "moved_to").write_text("h1\n")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "CURRENT overwritten": _overwritten("state/CURRENT"),
    "CURRENT emptied": _emptied("state/CURRENT"),
    "MANIFEST gone": _gone("state/MANIFEST-*"),
    "MANIFEST overwritten": _overwritten("state/MANIFEST-*"),
    "table gone": _gone("state/*.sst"),
    "table emptied": _emptied("state/*.sst"),
    "table overwritten": _overwritten("state/*.sst"),
    "mark overwritten": _overwritten("state/end.mark"),
    "segment gone": _gone("reservoir/*.seg"),
    "segment cut": _cut("reservoir/*.seg"),
    "segment overwritten": _overwritten("reservoir/*.seg"),
    "open rows gone": _gone("reservoir/*.open"),
    "open rows cut": _cut("reservoir/*.open"),
    "open rows overwritten": _overwritten("reservoir/*.open"),
    "pointer names nothing": _points_nowhere,
}


@pytest.fixture
def small(copy: _Copy) -> _Copy:
    """A copy whose chunks are small, with one segment."""
    copy.settings = replace(SMALL, chunk_events=8)
    return copy


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()
    }


@pytest.mark.parametrize("kind", DAMAGES)
def test_another_nodes_data_takes_the_place(small: _Copy, kind: str) -> None:
    fetching, kept = fetching_folder(small.place.folder), small.place.folder.parent / "kept"
    small.processed(30, kept)
    small.processed(40)
    DAMAGES[kind](small.place.folder)
    source = small.source()
    assert small.opened(source, _donors(30)) is None
    assert source.order == FetchOrder((_DONOR,), "", 0), "data before that of the damaged folder will do"
    assert source.damage
    assert small.place.folder.exists()
    shutil.move(kept, fetching)
    mark_verified(fetching)
    source.note(FetchEnd())
    assert small.opened(source, _donors(30)) == 30
    assert source.damage == ""
    assert not fetching.exists()


@pytest.mark.parametrize("kind", DAMAGES)
def test_it_stays_if_no_node_gives_its_data(small: _Copy, kind: str) -> None:
    small.processed(40)
    DAMAGES[kind](small.place.folder)
    source, before = small.source(), _files(small.place.folder / "reservoir")
    assert small.opened(source, _donors(may_come=True)) is None
    assert source.order is None
    for last, found in ((None, "is heard that has the data"), (Donor(_DONOR, 30), "there/0 had it last")):
        with pytest.raises(DataDamagedError, match=f"its data is damaged: .*{found}") as caught:
            small.source().open(Donors(last=last), _no_replies)
        assert "accept-gap" not in str(caught.value)
        assert "\n" not in str(caught.value)
    assert _files(small.place.folder / "reservoir") == before


def test_what_is_found_while_it_runs_is_not_opened_again(small: _Copy) -> None:
    small.processed(40)
    assert small.opened(small.source(), _donors(30)) == 40
    assert small.source().open(_donors(30), _no_replies, 0, "a page is damaged") is None
    with pytest.raises(DataDamagedError, match="a page is damaged"):
        small.source().open(Donors(), _no_replies, 0, "a page is damaged")


def test_it_stays_after_fetches_that_fail(small: _Copy) -> None:
    small.processed(40)
    DAMAGES["segment cut"](small.place.folder)
    source = small.source(_MANY)
    assert small.opened(source, _donors(30)) is None
    source.note(FetchEnd("nobody serves", is_final=True))
    with pytest.raises(DataDamagedError, match="could not be fetched: nobody serves"):
        source.open(_donors(30), _no_replies)


def test_what_comes_in_its_place_may_be_damaged_too(small: _Copy) -> None:
    fetching = fetching_folder(small.place.folder)
    small.processed(30, fetching)
    DAMAGES["segment cut"](fetching)
    small.processed(40)
    DAMAGES["table gone"](small.place.folder)
    source = small.source()
    assert small.opened(source, _donors(30)) is None
    mark_verified(fetching)
    source.note(FetchEnd())
    with pytest.raises(DataDamagedError, match="check the disks of both"):
        source.open(_donors(30), _no_replies)


def test_older_data_than_the_log_has_is_not_fetched(small: _Copy) -> None:
    small.processed(40)
    small.log.trim("t", 0, 35)
    DAMAGES["segment cut"](small.place.folder)
    source = small.source()
    with pytest.raises(DataDamagedError):
        source.open(_donors(30), _no_replies)
    assert small.opened(source, _donors(36)) is None
    assert source.order == FetchOrder((_DONOR,), "", 35)


def test_without_other_nodes_the_error_is_that_of_the_file(small: _Copy) -> None:
    small.processed(40)
    DAMAGES["segment cut"](small.place.folder)
    with pytest.raises(Exception, match=r"\.seg, byte") as caught:
        small.source().open(None, _no_replies)
    assert not isinstance(caught.value, DataDamagedError | LogGapError)
