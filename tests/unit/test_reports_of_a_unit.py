"""How often a unit reports, anew where the broker was away, and as which run: whatever its clock says, as a later one
than those before.
"""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, Cut
from railgun.cluster.plan import Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import encode_plan
from railgun.cluster.reports import decode_report, encode_report
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportRefusedError, TransportUnavailableError
from railgun.messaging.transport import Entry, Fetched, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.unit.clock import Clock
from railgun.unit.copies import UnitCopies
from railgun.unit.positions import Positions
from railgun.unit.report_reader import Heard
from railgun.wire.records import Records
from tests.cluster.some_reports import TASK, report, status
from tests.unit.lone_copies import LoneCopies

NAME = CopyName("node-1", 0)
STEP_S, STEPS = 0.01, 1_000


class Time:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    def date_ms(self) -> int:
        return round(self.now_s * 1000)


class Log:
    """Takes what is written. refused: raised at once.  failed: what becomes of what is sent."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.refused: Exception | None = None
        self.failed: Exception | None = None

    def submit(self, entries: list[Entry]) -> Future[list[int]]:
        if self.refused is not None:
            raise self.refused
        if self.failed is not None:
            given_up: Future[list[int]] = Future()
            given_up.set_exception(self.failed)
            return given_up
        self.written += entries[0].records.to_list()
        done: Future[list[int]] = Future()
        done.set_result([len(self.written)])
        return done


@pytest.mark.parametrize(
    ("units", "takeover_s", "interval_ms"),
    [(1, 1.0, 200), (1, 0.5, 100), (100, 1.0, 200), (4_000, 1.0, 2_000)],
)
def test_all_units_together_report_no_more_than_each_process_can_read(
    units: int, takeover_s: float, interval_ms: int
) -> None:
    log, time, copies = Log(), Time(), LoneCopies(1)
    copies.units, copies.takeover_s = units, takeover_s
    positions = Positions(
        cast(Transport, log), Topics("p"), NAME, cast(UnitCopies, copies), 0.05, cast(Clock, time)
    )
    for _ in range(STEPS):
        time.now_s += STEP_S
        positions.note([])
    # The first ones follow one another as fast as they may.
    assert decode_report(log.written[-1]).interval_ms == interval_ms
    expected = STEPS * STEP_S * 1000 / interval_ms
    assert 0.8 * expected <= len(log.written) <= expected + 8


def test_a_report_that_was_not_delivered_is_said_anew() -> None:
    log, time = Log(), Time()
    positions = Positions(
        cast(Transport, log), Topics("p"), NAME, cast(UnitCopies, LoneCopies(1)), 0.05, cast(Clock, time)
    )

    def pass_s(seconds: float) -> int:
        before = len(log.written)
        for _ in range(round(seconds / STEP_S)):
            time.now_s += STEP_S
            positions.note([])
        return len(log.written) - before

    assert pass_s(1.0)
    away = TransportUnavailableError("positions-0", "Message timed out", "Check the broker")
    log.failed = away
    assert not pass_s(5.0)
    # The topic has to be looked for again, at a broker that is away.
    log.failed, log.refused = None, away
    assert not pass_s(5.0)
    log.refused = None
    assert pass_s(0.1)
    # Waiting does not mend what the broker refuses.
    log.failed = TransportRefusedError("positions-0", "not authorized", "Give the right")
    with pytest.raises(TransportRefusedError):
        pass_s(1.0)


def _heard(generation: int) -> Heard:
    record = encode_report(report(status(), node=NAME.node, unit=NAME.unit, generation=generation))
    fetched = Fetched(
        TopicPartition("positions", 0), Records.of([record]).offsets[:1], Records.of([record]), 1
    )
    return Heard(0.0, [fetched])


def test_a_unit_whose_clock_went_back_is_a_later_run_all_the_same() -> None:
    heard: list[Heard] = []

    def drain() -> list[Heard]:
        found = heard[:]
        heard.clear()
        return found

    copies = UnitCopies(NAME, 500, drain, "assignment")
    for generation, expected in ((400, 500), (500, 500), (700, 701), (701, 701)):
        heard.append(_heard(generation))
        copies.decide([])
        assert copies.generation == expected


def test_a_plan_of_a_newer_release_is_said_to_be_left_out_once(caplog: pytest.LogCaptureFixture) -> None:
    plan = Plan(3, policy=ClusterPolicy())
    newer = b'{"kind": "plan", "version": 9}'
    readable = [record for _, record in encode_plan(plan, Plan(), 1)]
    records = Records.of([*readable, newer, newer, *readable, newer])
    fetched = Fetched(TopicPartition("assignment", 0), np.arange(len(records), dtype=np.int64), records, 1)
    copies = UnitCopies(NAME, 500, lambda: [Heard(0.0, [fetched])], "assignment")
    copies.decide([])
    assert copies.plan == plan
    said = "the plan is of version 9; this release reads 1: this unit keeps plan 3"
    assert caplog.text.count(said) == 2


def test_a_copy_that_does_not_run_says_of_which_accepted_topic_it_is() -> None:
    """Others would pass its report over, and with it what it has replied to."""
    host = SimpleNamespace(
        place=SimpleNamespace(key=TaskKey(**TASK), cut=Cut(7, -1, "second", 7)),
        is_running=False,
        is_ready=False,
        is_filling=False,
        position=90,
        replied=lambda: 90,
        epoch_before=lambda offset: 0,
        durable=(80, 0),
        lag=0,
        failure=None,
        following=None,
        lost=None,
        replaced=None,
        left_behind=None,
        fetching=None,
        folder_id="a",
        topic_id="second",
    )
    log, time = Log(), Time()
    positions = Positions(
        cast(Transport, log), Topics("p"), NAME, cast(UnitCopies, LoneCopies(1)), 0.05, cast(Clock, time)
    )
    positions.note([cast(TaskHost, host)])
    [copy] = decode_report(log.written[-1]).copies
    assert (copy.position, copy.topic_id) == (90, "second")
