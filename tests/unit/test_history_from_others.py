"""A copy of a task with history on a node that lacks what was built with it: its data comes from another node."""

import logging
import shutil
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from railgun.catalog.changes import Deepen, change_to_json
from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donor, Donors
from railgun.host.data_folder import fetching_folder
from railgun.host.fetcher import FetchEnd
from railgun.host.host_state import HostState
from railgun.wire.control_records import encode_control
from tests.host.fetched_folder import mark_verified
from tests.task.small_log import SmallLog
from tests.unit.local_units import awaited
from tests.unit.test_fetched_copies import _Unit, _unit
from tests.unit.test_unit_hosts import _DEFINITIONS, _KEY, _WHERE, _AwayLog, _copy, _with_history

_MANY = 1_000
# Where the record lies that orders the history, and the end of the log.
_ORDERED_AT, _END = 2, 5


def _at(position: int) -> Donors:
    return Donors((Donor(CopyName("there", 0), position),))


def _order_deepening(log: _AwayLog) -> None:
    small = SmallLog(_DEFINITIONS)
    order = encode_control(change_to_json(Deepen(3, "s", "h1", 0)))
    events = [small.records[small.event(name, 1_000)] for name in "ab"]
    log.append(*_WHERE, [*small.records[:2], order, *events])


def _put_data_of_another(unit: _Unit, build: Callable[[Path], None], there: Path) -> None:
    """Put the data of a copy that has the history, and all of the log, where the transfer process puts it."""
    with _copy(there, unit.log) as copy:
        awaited(copy.is_open)
        build(copy.place.history)
        host = copy.hosts.by_key[_KEY]
        copy.hosts.run_isolated(host, partial(host.take, unit.log.read(*_WHERE, 0, 64, 1 << 20)))
        awaited(copy.is_open)
        host.take(unit.log.read(*_WHERE, host.position, 64, 1 << 20))
        host.checkpoint()
    fetched = fetching_folder(unit.place.folder)
    shutil.move(there / "task", fetched)
    mark_verified(fetched)


def test_its_data_is_fetched_however_short_the_log_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    built: list[Callable[[Path], None]] = []
    with _unit(tmp_path, _MANY, lambda log: built.append(_with_history(log)[1])) as unit:
        unit.fetcher.known = _at(_END)
        awaited(lambda: unit.reads() is HostState.FETCHING, 10.0)
        assert unit.fetcher.order is not None
        assert unit.fetcher.order.log_start == _ORDERED_AT + 1
        _put_data_of_another(unit, built[0], tmp_path / "there")
        unit.fetcher.ended = FetchEnd()
        awaited(unit.is_open)
        host = unit.hosts.by_key[_KEY]
        assert host.position == _END
        assert host.task.history == "h1"
        assert unit.fetcher.begun == 1
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_so_it_is_where_a_deepening_is_ordered_amid_the_log(tmp_path: Path) -> None:
    with _unit(tmp_path, _MANY, _order_deepening) as unit:
        unit.fetcher.known = _at(_END)
        awaited(lambda: unit.reads() is HostState.FETCHING, 10.0)


@pytest.mark.parametrize("known", [Donors(), _at(_ORDERED_AT)])
def test_it_fails_only_until_somebody_has_passed_the_order(tmp_path: Path, known: Donors) -> None:
    with _unit(tmp_path, _MANY, _with_history) as unit:
        unit.fetcher.known = known
        awaited(lambda: unit.reads() is HostState.FAILED)
        assert unit.passes(20.0) is HostState.FAILED
        assert unit.fetcher.begun == 0
        unit.fetcher.known = _at(_ORDERED_AT + 1)
        unit.passes(6.0)
        awaited(lambda: unit.reads() is HostState.FETCHING, 10.0)


def test_after_fetches_that_fail_it_is_begun_again_less_and_less_often(tmp_path: Path) -> None:
    with _unit(tmp_path, _MANY, _with_history) as unit:
        unit.fetcher.known, unit.fetcher.ended = _at(_END), FetchEnd("nobody serves", is_final=True)
        begun = list[float]()
        while unit.now_s < 200.0:
            before = unit.fetcher.begun
            unit.passes(0.5)
            unit.reads()
            begun += [unit.now_s] * (unit.fetcher.begun - before)
        pauses = [later - earlier for earlier, later in pairwise(begun)]
        assert pauses == pytest.approx([5, 10, 20, 40, 80], abs=3.0)
