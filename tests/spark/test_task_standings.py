"""What the job that deepens a stream believes of its tasks: what they say now, of this deepening, of this offer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from railgun.cluster.copies import CopyState
from railgun.cluster.reports import CopyStatus, encode_report
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.spark.backfill.task_standings import TaskStandings
from railgun.spark.errors import HistoryError
from tests.cluster.some_reports import report, status

TASK = ("k", 0)


class Told:
    """A topic of positions, and what tasks say in it."""

    def __init__(self, log: EmbeddedLog) -> None:
        self.log = log
        log.create_topic("positions", 1)

    def say(self, created: int = 1, failed: str = "", **following: Any) -> None:
        state = CopyState.FAILED if failed else CopyState.ANSWERING
        copy = status(created=created, state=state, failure=failed, following=following or None)
        self.log.append("positions", 0, [encode_report(report(copy))])

    def standings(self) -> TaskStandings:
        return TaskStandings(self.log, "positions", ("s", 1), "h", "2")


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    log = EmbeddedLog(tmp_path, Durability.OS)
    try:
        yield Told(log)
    finally:
        log.close()


def test_what_went_wrong_before_does_not_count(told: Told) -> None:
    told.say(history="h", offer="2", failure="no space left")
    told.say(failed="of old")
    standings = told.standings()
    standings.check()
    told.say(history="h", offer="1", failure="of the offer before")
    told.say(history="g", offer="2", failure="of another")
    told.say(created=7, failed="another stream")
    # Mended since: what is said last counts.
    told.say(history="h", offer="2", failure="no space left")
    told.say(history="h", behind=3)
    standings.wait([TASK], lambda standing: (standing.following or {}).get("behind") == 3)


@pytest.mark.parametrize(
    "said", [{"history": "h", "offer": "2", "failure": "no room"}, {"failed": "no room"}]
)
def test_what_is_wrong_now_ends_the_job(told: Told, said: dict[str, str]) -> None:
    standings = told.standings()
    told.say(**said)
    with pytest.raises(HistoryError, match=r"s/k/0 cannot be deepened: .*no room"):
        standings.wait([TASK], lambda standing: False)


def test_a_copy_that_does_not_see_what_was_built_is_named(told: Told) -> None:
    standings = TaskStandings(told.log, "positions", ("s", 1), "h", "2", known_within_s=0.0)
    told.say(history="g", behind=3)
    with pytest.raises(
        HistoryError, match=r"its copy on node-1/0 does not see what was built for it: .* share it"
    ):
        standings.wait([TASK], lambda standing: False)


def test_a_copy_that_opens_what_was_built_is_waited_for(told: Told) -> None:
    standings = TaskStandings(told.log, "positions", ("s", 1), "h", "2", known_within_s=0.0)
    told.say(history="h", opening=True)
    asked: list[object] = []

    def is_so(standing: CopyStatus) -> bool:
        asked.append(standing.following)
        return len(asked) > 2

    standings.wait([TASK], is_so)
    assert asked == [{"history": "h", "opening": True}] * 3
