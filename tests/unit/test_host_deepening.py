"""A task of a unit that is deepened: what goes wrong beside it never stops it, and its replies stay what they were."""

from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.changes import BeginDeepening, Deepen
from railgun.catalog.errors import DefinitionError
from railgun.task.own_events import Freezing
from railgun.unit.host_deepening import HostDeepening
from railgun.unit.shadow import Shadow
from railgun.wire.encode import encode_event
from railgun.wire.reply import decode_reply
from reservoir.errors import StorageFailedError
from tests.unit.deepened_host import HISTORY, TOPICS, DeepenedHost, deepened_host
from tests.unit.local_units import awaited

_FRONT_END = 7


def events(first: int, count: int) -> list[bytes]:
    """Some that come from an input topic, of which nothing is committed."""
    found = []
    for number in range(first, first + count):
        id_, time_ms = f"x{number}", 1_100_000 + 100 * number
        to_front_end = _FRONT_END, 1, number
        found.append(encode_event(1, id_, time_ms, [id_, time_ms, "a"], *to_front_end, source=(5, number, 0)))
    return found


def replies(rig: DeepenedHost) -> list[bytes]:
    topic = TOPICS.replies(_FRONT_END)
    rig.host.replied()
    return rig.log.read(topic, 0, 0, 10_000, 1 << 24).values()


@pytest.mark.parametrize("where", ["folder", "frozen", "finish"])
def test_what_cannot_be_put_aside_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The record is in the log for good: every start comes to it again."""
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        if where == "folder":
            (rig.data / "backfill").write_text("")
        elif where == "frozen":

            def refused(*_: object) -> None:
                raise StorageFailedError("segment", "write", OSError("no space left"))

            monkeypatch.setattr(type(rig.host.task.reservoir), "frozen", refused)
        else:

            def full(freezing: Freezing) -> None:
                freezing.give_up()
                raise OSError("no space left")

            monkeypatch.setattr(Freezing, "finish", full)
        for _ in range(2):
            rig.change(BeginDeepening)
            awaited(lambda: rig.host.following is not None)
            assert rig.host.following is not None
            assert rig.host.following["history"] == HISTORY
            assert rig.host.following["failure"]
            before = rig.host.position
            rig.add(events(0, 3))
            assert rig.host.is_running
            assert rig.host.position == before + 3
            rig.host.close()
            rig.open()
            rig.take_all()
            assert rig.host.is_running


def test_a_new_request_forgets_what_went_wrong_with_the_one_before(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        obstacle = rig.data / "backfill"
        obstacle.write_text("")
        rig.change(BeginDeepening, "g" * 32)
        assert rig.host.following is not None
        obstacle.unlink()
        rig.begin()
        assert rig.host.following is None


@pytest.mark.parametrize("is_ahead", [False, True])
def test_records_read_again_get_the_reply_that_they_got(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ahead: bool
) -> None:
    """The unit is gone between the new task's checkpoint, or before it, and its pointer."""
    monkeypatch.setattr(HostDeepening, "_move", lambda *_: None)
    with deepened_host(tmp_path) as rig:
        rig.log.create_topic(TOPICS.replies(_FRONT_END), 1)
        rig.begin()
        rig.offer()
        rig.work_until_following()
        rig.add(events(0, 20))
        rig.change(Deepen)
        rig.add(events(20, 20))
        assert rig.host.task.history == HISTORY
        if is_ahead:
            rig.host.checkpoint()
        met = rig.host.task.inputs.positions()
        rig.host.close()
        rig.open()
        rig.take_all()
        assert rig.host.task.history == HISTORY
        assert rig.host.task.inputs.positions() == met
        before = len(replies(rig))
        rig.add(events(0, 40))
        again = replies(rig)
        assert rows_of(again[before:]) == rows_of(again)[:40]


def rows_of(records: list[bytes]) -> list[Any]:
    """(number of the event, where it was in the log, flags, the words of its metrics) of each reply, in order."""
    found: list[Any] = []
    for batch in map(decode_reply, records):
        words = [batch.words(index).tolist() for index in range(len(batch.source.metrics))]
        found += zip(batch.sequence.tolist(), batch.offset.tolist(), batch.flags.tolist(), *words)
    return found


def test_whatever_is_wrong_with_what_follows_the_task_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object) -> None:
        raise DefinitionError(("streams",), "not to be used")

    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        with monkeypatch.context() as patch:
            patch.setattr(HostDeepening, "_open", wrong)
            rig.work_until("failure", "streams: not to be used")
        assert rig.host.is_running
        rig.host.close()
        rig.open()
        rig.take_all()
        rig.work_until_following()
        monkeypatch.setattr(Shadow, "feed", wrong)
        rig.add(events(0, 3))
        assert rig.host.is_running
        assert rig.host.following == {"failure": "streams: not to be used"}
