"""Copies whose data turns out to be damaged, or whose log to lack records, while they run: they are opened again, and
another node's data takes the place of theirs.
"""

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donor, Donors
from railgun.host.data_folder import fetching_folder
from railgun.host.fetcher import FetchEnd
from railgun.host.host_state import HostState
from railgun.messaging.transport import Fetched
from railgun.task.errors import StateLeftBehindError
from reservoir.segments.format import (
    FRAME_HEAD_BYTES,
    HEADER_BYTES,
    SECTION_HOT,
    checked_directory,
    parse_chunk,
    parse_frame_head,
)
from tests.host.fetched_folder import mark_verified
from tests.task.small_log import SmallLog
from tests.unit.local_units import SMALL, awaited
from tests.unit.test_fetched_copies import _DONOR, _Unit, _unit
from tests.unit.test_history_from_others import _at, _put_data_of_another
from tests.unit.test_unit_hosts import _DEFINITIONS, _KEY, _WHERE, _AwayLog, _with_history

_MANY, _END = 1_000, 42
_CHUNKS_BEFORE = 2
_CHUNKS = replace(SMALL, chunk_events=8)
# An opening reads the chunks of the events whose ids are remembered.
_FORGETFUL = _DEFINITIONS.replace('id = "id"', 'id = "id"\ndedup_events = 8', 1)
_DAMAGED = "its data is damaged, and is fetched from another node"


def _damage_a_chunk(folder: Path) -> None:
    """Flip a bit of a chunk that nothing but a window's edge reads, once it comes there."""
    place = min((folder / "reservoir").glob("*.seg"))
    data, name, begin = bytearray(place.read_bytes()), str(place), HEADER_BYTES
    for _ in range(_CHUNKS_BEFORE):
        begin += parse_frame_head(bytes(data[begin:]), name, begin).size_bytes
    frame = bytes(data[begin:])
    head = parse_frame_head(frame, name, begin)
    chunk = parse_chunk(checked_directory(frame, head, name, begin))
    data[begin + FRAME_HEAD_BYTES + head.directory_bytes + chunk.sections[SECTION_HOT].offset] ^= 1
    place.write_bytes(data)


def _many_events(log: _AwayLog) -> None:
    small = SmallLog(_FORGETFUL)
    events = [small.records[small.event(f"e{number}", 1_000 * number)] for number in range(_END - 2)]
    log.append(*_WHERE, [*small.records[:2], *events])


def _is_opened_damaged(unit: _Unit, kept: Path) -> None:
    """Have the unit run a copy of which a chunk is damaged, and write the event that needs this chunk. kept: gets the
    data as it was before.
    """
    unit.fetcher.known = Donors()
    awaited(unit.is_open)
    unit.reads()
    host = unit.hosts.by_key[_KEY]
    assert host.position == _END
    host.checkpoint()
    unit.hosts.assign([])
    unit.hosts.wait()
    shutil.copytree(unit.place.folder, kept)
    _damage_a_chunk(unit.place.folder)
    unit.hosts.assign([unit.place])
    awaited(unit.is_open)
    small = SmallLog(_FORGETFUL)
    unit.log.append(*_WHERE, [small.records[small.event("late", 100_000_000)]])


def _comes(unit: _Unit, kept: Path) -> None:
    """Let the fetch end with this data."""
    shutil.copytree(kept, fetching_folder(unit.place.folder))
    mark_verified(fetching_folder(unit.place.folder))
    unit.fetcher.ended = FetchEnd()


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_chunk_that_a_window_needs_is_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with _unit(tmp_path, _MANY, _many_events, _CHUNKS) as unit:
        _is_opened_damaged(unit, tmp_path / "kept")
        unit.fetcher.known = _DONOR
        states = set[HostState]()

        def is_fetched() -> bool:
            states.add(unit.reads())
            return unit.fetcher.begun == 1

        awaited(is_fetched, 10.0)
        assert HostState.FAILED not in states
        assert (unit.place.folder / "state" / "CURRENT").exists(), "it stays until the other is here"
        _comes(unit, tmp_path / "kept")
        awaited(unit.is_open)
        unit.reads()
        assert unit.hosts.by_key[_KEY].position == _END + 1
    [said] = _said(caplog)
    assert _DAMAGED in said
    assert ".seg, byte" in said


def test_it_fails_until_somebody_gives_its_data(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with _unit(tmp_path, _MANY, _many_events, _CHUNKS) as unit:
        _is_opened_damaged(unit, tmp_path / "kept")
        awaited(lambda: unit.reads() is HostState.FAILED, 10.0)
        failure = unit.hosts.by_key[_KEY].failure
        assert failure is not None
        assert failure.startswith(f"DataDamagedError: {unit.place.folder}: its data is damaged: ")
        assert failure.endswith(
            "No copy on another node is heard that has the data: start the node that had it"
        )
        assert unit.passes(30.0) is HostState.FAILED
        assert unit.fetcher.begun == 0
        unit.fetcher.known = _DONOR
        unit.passes(6.0)
        awaited(lambda: unit.state is HostState.FETCHING and unit.fetcher.begun == 1, 10.0)
    stopped, fetched = _said(caplog)
    assert "s/k/0 is stopped: " in stopped
    assert _DAMAGED in fetched


def test_damage_that_comes_again_is_fetched_away_less_and_less_often(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The data of the donor may be damaged too, or this disk damages whatever it gets."""
    with _unit(tmp_path, _MANY, _many_events, _CHUNKS) as unit:
        _is_opened_damaged(unit, tmp_path / "kept")
        _damage_a_chunk(tmp_path / "kept")
        unit.fetcher.known, begun = _DONOR, list[float]()
        while unit.now_s < 200.0:
            before = unit.fetcher.begun
            unit.passes(0.5)
            unit.reads()
            if unit.fetcher.begun > before:
                begun.append(unit.now_s)
                _comes(unit, tmp_path / "kept")
                awaited(unit.is_open, 10.0)
        pauses = [later - earlier for earlier, later in pairwise(begun)]
        assert pauses == pytest.approx([10, 20, 40, 80], abs=3.0)
    # Each is said, since each is another damage.
    assert len([each for each in _said(caplog) if _DAMAGED in each]) == len(begun)


def _left_behind(unit: _Unit) -> None:
    """Let the log begin behind a copy that runs, as the unit's loop finds out."""
    host = unit.hosts.by_key[_KEY]
    unit.log.trim(*_WHERE, 30)
    found = StateLeftBehindError(str(_WHERE), "offset 20 is next, the log has 30 to 42", 0, -1, None)
    unit.hosts.stop(host, found)


def _reads_a_part(unit: _Unit) -> None:
    awaited(unit.is_open)
    host = unit.hosts.by_key[_KEY]
    host.take(unit.log.read(*_WHERE, 0, 20, 1 << 20))


def test_a_log_that_begins_behind_a_copy_that_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with _unit(tmp_path, _MANY) as unit:
        _reads_a_part(unit)
        _left_behind(unit)
        awaited(lambda: unit.state is HostState.FETCHING and unit.fetcher.begun == 1, 10.0)
        assert unit.fetcher.order is not None
        assert unit.fetcher.order.log_start == 30
        assert unit.now_s == 0.0, "at once"
    assert _said(caplog) == []


def test_so_it_fails_like_one_that_opens_if_nobody_gives_its_data(tmp_path: Path) -> None:
    with _unit(tmp_path, _MANY) as unit:
        unit.fetcher.known = Donors()
        _reads_a_part(unit)
        _left_behind(unit)
        awaited(lambda: unit.state is HostState.FAILED, 10.0)
        host = unit.hosts.by_key[_KEY]
        assert host.failure is not None
        assert "the log begins at offset 30" in host.failure
        assert "accept-gap s/k/0" in host.failure
        assert host.left_behind is not None
        unit.fetcher.known = _DONOR
        unit.passes(12.0)
        awaited(lambda: unit.state is HostState.FETCHING and unit.fetcher.begun == 1, 10.0)


def test_a_hole_amid_its_log_needs_the_data_of_one_that_is_behind_it(tmp_path: Path) -> None:
    with _unit(tmp_path, _MANY) as unit:
        unit.fetcher.known = Donors((Donor(CopyName("before", 0), 29), *_DONOR.known))
        _reads_a_part(unit)
        host, behind = unit.hosts.by_key[_KEY], unit.log.read(*_WHERE, 30, 5, 1 << 20)
        holed = Fetched(_WHERE, np.arange(30, 35), behind.records, 35)
        unit.hosts.run_isolated(host, partial(host.take, holed))
        awaited(lambda: unit.state is HostState.FETCHING and unit.fetcher.begun == 1, 10.0)
        assert unit.fetcher.order is not None
        assert [each.node for each in unit.fetcher.order.donors] == ["there"]


def _damage_what_is_built(unit: _Unit) -> None:
    place = max(unit.place.history.rglob("*.sst"), key=lambda path: path.stat().st_size)
    place.write_bytes(place.read_bytes()[:-1])


def test_history_that_is_damaged_here_is_fetched(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    built: list[Callable[[Path], None]] = []

    def write(log: _AwayLog) -> None:
        built.append(_with_history(log)[1])

    with _unit(tmp_path, _MANY, write) as unit:
        built[0](unit.place.history)
        _damage_what_is_built(unit)
        unit.fetcher.known = _at(5)
        awaited(lambda: unit.reads() is HostState.FETCHING and unit.fetcher.begun == 1, 10.0)
        _put_data_of_another(unit, built[0], tmp_path / "there")
        unit.fetcher.ended = FetchEnd()
        awaited(unit.is_open)
        assert unit.hosts.by_key[_KEY].task.history == "h1"
    [said] = _said(caplog)
    assert "history h1 was put before its log, and what was built with it is damaged: " in said


def test_so_it_fails_until_somebody_has_it(tmp_path: Path) -> None:
    built: list[Callable[[Path], None]] = []

    def write(log: _AwayLog) -> None:
        built.append(_with_history(log)[1])

    with _unit(tmp_path, _MANY, write) as unit:
        built[0](unit.place.history)
        _damage_what_is_built(unit)
        unit.fetcher.known = Donors()
        awaited(lambda: unit.reads() is HostState.FAILED, 10.0)
        failure = unit.hosts.by_key[_KEY].failure
        assert failure is not None
        assert "what was built with it is damaged: " in failure
        unit.fetcher.known = _at(5)
        unit.passes(6.0)
        awaited(lambda: unit.reads() is HostState.FETCHING, 10.0)
