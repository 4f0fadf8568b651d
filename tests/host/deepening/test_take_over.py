"""A task of a unit that is deepened: what goes wrong beside it never stops it, and its replies stay what they were."""

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.changes import BeginDeepening, Deepen
from railgun.catalog.errors import DefinitionError
from railgun.history.accepted_events import OwnEvents, SnapshotExport, read_rows
from railgun.history.durable_files import write_whole
from railgun.history.manifest import HistoryManifest
from railgun.history.plan_file import OWN_FILE, deepening_folder, read_own
from railgun.history.request_files import OFFER
from railgun.history.task_folder import POINTER
from railgun.host.deepening import built_task
from railgun.host.deepening.built_task import BuiltTask
from railgun.host.deepening.successor import Successor
from railgun.host.deepening.take_over import TakeOver
from railgun.host.host_state import HostState
from railgun.host.task_log import TaskLog
from railgun.messaging.errors import TransportUnavailableError
from railgun.task.processor import TaskProcessor
from railgun.unit import hosts as unit_hosts
from railgun.unit.loop import ROUND_RECORDS
from railgun.wire.encode import encode_event
from railgun.wire.reply import decode_reply
from reservoir.errors import StorageFailedError
from tests.host.deepening.deepened_host import HISTORY, TOPICS, WHERE, DeepenedHost, deepened_host
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


def test_what_another_copy_has_put_aside_is_no_failure_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        rig.request()
        with monkeypatch.context() as patch:

            def full(freezing: SnapshotExport) -> None:
                freezing.give_up()
                raise OSError("no space left")

            patch.setattr(SnapshotExport, "finish", full)
            rig.change(BeginDeepening)
            awaited(lambda: rig.host.following is not None)
        rig.work()
        assert rig.host.following is not None
        rig.own.mkdir(parents=True)
        write_whole(rig.own / OWN_FILE, json.dumps({"history": HISTORY}))
        rig.work()
        assert rig.host.following is None


@pytest.mark.parametrize("where", ["folder", "frozen", "finish"])
def test_what_cannot_be_put_aside_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The record is in the log for good: every start comes to it again."""
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        rig.request()
        if where == "folder":
            rig.own.parents[1].write_text("")
        elif where == "frozen":

            def refused(*_: object) -> None:
                raise StorageFailedError("segment", "write", OSError("no space left"))

            monkeypatch.setattr(type(rig.host.task.reservoir), "frozen", refused)
        else:

            def full(freezing: SnapshotExport) -> None:
                freezing.give_up()
                raise OSError("no space left")

            monkeypatch.setattr(SnapshotExport, "finish", full)
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
            rig.close()
            rig.open()
            rig.take_all()
            assert rig.host.is_running


def test_a_new_request_forgets_what_went_wrong_with_the_one_before(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        rig.request("g" * 32)
        obstacle = rig.own.parents[1]
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
    monkeypatch.setattr(TakeOver, "_move", lambda *_: None)
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
        rig.close()
        rig.open()
        rig.take_all()
        assert rig.host.task.history == HISTORY
        assert rig.host.task.inputs.positions() == met
        before = len(replies(rig))
        rig.add(events(0, 40))
        again = replies(rig)
        assert rows_of(again[before:]) == rows_of(again)[:40]


def test_a_broker_that_is_away_as_the_task_is_replaced_ends_no_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise TransportUnavailableError(str(WHERE), "it does not answer", "Check the broker")

    monkeypatch.setattr(unit_hosts, "_AWAY_S", 0.0)
    with deepened_host(tmp_path) as rig:
        rig.log.create_topic(TOPICS.replies(_FRONT_END), 1)
        rig.begin()
        rig.offer()
        rig.work_until_following()
        rig.add(events(0, 20))
        with monkeypatch.context() as patch:
            patch.setattr(Successor, "catch_up", away)
            rig.change(Deepen)
            assert not rig.host.is_running
            assert rig.host.failure is None
        # As the loop does in each of its rounds.
        awaited(lambda: rig.hosts.advance() or rig.host.is_running)
        rig.take_all()
        assert rig.host.task.history == HISTORY
        rig.add(events(20, 20))
        numbers = {number for number, *_ in rows_of(replies(rig))}
        assert numbers == set(range(40))


@contextmanager
def catching_up_is_held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Successors catch up only once the block ends. Yields what is set as soon as one begins to."""
    catch_up, begun, may_go_on = Successor.catch_up, threading.Event(), threading.Event()

    def slow(successor: Successor) -> None:
        begun.set()
        assert may_go_on.wait(60)
        catch_up(successor)

    monkeypatch.setattr(Successor, "catch_up", slow)
    try:
        yield begun
    finally:
        may_go_on.set()


def test_a_successor_that_has_to_catch_up_first_does_so_beside_the_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has offered it, as in a unit that was away until the log ordered it. Other tasks go on meanwhile."""
    with deepened_host(tmp_path) as rig:
        rig.log.create_topic(TOPICS.replies(_FRONT_END), 1)
        rig.begin()
        rig.add(events(0, 50))
        rig.order(Deepen)
        fetched, host = rig.log.read(*WHERE, rig.host.position, 64, 1 << 20), rig.host
        with catching_up_is_held(monkeypatch) as begun:
            rig.hosts.run_isolated(host, partial(host.take, fetched))
            assert begun.wait(60)
            assert (host.is_running, host.following, rig.hosts.are_open) == (False, None, False)
        awaited(lambda: rig.hosts.advance() or host.is_running)
        rig.add(events(50, 20))
        assert host.task.history == HISTORY
        assert {number for number, *_ in rows_of(replies(rig))} == set(range(70))


def test_a_task_that_leaves_while_it_goes_on_with_its_successor_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its closing waits in the lane behind the change, and nothing that the change begins may wait behind that."""
    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.add(events(0, 50))
        rig.order(Deepen)
        fetched, host = rig.log.read(*WHERE, rig.host.position, 64, 1 << 20), rig.host
        with catching_up_is_held(monkeypatch) as begun:
            rig.hosts.run_isolated(host, partial(host.take, fetched))
            assert begun.wait(60)
            rig.hosts.assign([])
        awaited(lambda: rig.hosts.advance() or host.state is HostState.CLOSED)
        rig.open()
        rig.take_all()
        assert rig.host.task.history == HISTORY


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
            patch.setattr(BuiltTask, "open", wrong)
            rig.work_until("failure", "streams: not to be used")
        assert rig.host.is_running
        rig.close()
        rig.open()
        rig.take_all()
        rig.work_until_following()
        monkeypatch.setattr(Successor, "feed", wrong)
        rig.add(events(0, 3))
        assert rig.host.is_running
        failed = {"history": HISTORY, "offer": "1", "failure": "streams: not to be used"}
        assert rig.host.following == failed
        monkeypatch.undo()
        rig.offer()
        rig.work_until_following()


@pytest.mark.parametrize("is_given_up", [False, True])
def test_the_task_is_let_go_where_what_follows_it_cannot_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_given_up: bool
) -> None:
    closed: list[TaskProcessor] = []
    close = TaskProcessor.close

    def full(task: TaskProcessor) -> None:
        close(task)
        closed.append(task)
        if task is not own:
            raise OSError("no space left")

    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        rig.work_until_following()
        own = rig.host.task
        monkeypatch.setattr(TaskProcessor, "close", full)
        if is_given_up:
            shutil.rmtree(deepening_folder(rig.data, "s"))
            awaited(lambda: (rig.work(), rig.host.following)[1] is None)
            assert rig.host.is_running
        rig.close()
        assert len(closed) == 2
        assert closed[1] is own
        monkeypatch.undo()
        rig.open()
        rig.take_all()
        assert rig.host.is_running


def test_what_nobody_asks_for_any_more_is_not_put_aside(tmp_path: Path) -> None:
    """The record is met again after it was given up: nobody would remove it."""
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        rig.change(BeginDeepening)
        rig.request("g" * 32)
        rig.change(BeginDeepening)
        assert rig.host.following is None
        assert not rig.own.exists()


def test_given_up_what_went_wrong_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise DefinitionError(("streams",), "not to be used")

    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        monkeypatch.setattr(TaskLog, "recover", wrong)
        rig.work_until("failure", "streams: not to be used")
        shutil.rmtree(deepening_folder(rig.data, "s"))
        awaited(lambda: (rig.work(), rig.host.following)[1] is None)
        assert rig.host.is_running


def test_what_the_log_names_stays_when_the_job_has_come_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit started anew after all had taken over: its old task has not come to the record again."""
    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        rig.work_until_following()
        with monkeypatch.context() as patch:
            patch.setattr(TakeOver, "_move", lambda *_: None)
            rig.change(Deepen)
            rig.close()
        rig.open()
        assert rig.host.task.history == ""
        awaited(lambda: (rig.work(), "behind" in (rig.host.following or {}))[1])
        shutil.rmtree(deepening_folder(rig.data, "s"))
        awaited(lambda: (rig.work(), rig.host.following)[1] is None)
        rig.take_all()
        assert rig.host.is_running
        assert rig.host.task.history == HISTORY


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_a_second_history_stays_when_the_unit_is_gone_before_it_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_checkpointed: bool
) -> None:
    """All have taken over, so the job has removed its plan; one start more, and the first history's folder goes."""
    second = "g" * 32
    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        rig.work_until_following()
        rig.change(Deepen)
        awaited(lambda: (rig.work(), (rig.place.folder / POINTER).exists())[1])
        shutil.rmtree(deepening_folder(rig.data, "s"))
        awaited(lambda: (rig.work(), rig.host.following)[1] is None)
        rig.begin(second)
        rig.offer(second)
        rig.work_until_following()
        with monkeypatch.context() as patch:
            patch.setattr(TakeOver, "_move", lambda *_: None)
            rig.change(Deepen, second)
            rig.add(events(0, 20))
            assert rig.host.task.history == second
            if is_checkpointed:
                rig.host.checkpoint()
            rig.close()
        shutil.rmtree(deepening_folder(rig.data, "s"))
        for _ in range(2):
            rig.open()
            rig.work()
            rig.take_all()
            assert rig.host.is_running
            assert rig.host.task.history == second
            awaited(lambda: (rig.work(), _folders(rig.place.folder) == [second])[1])
            rig.close()
        rig.open()


def _folders(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if path.is_dir())


def test_what_is_offered_to_another_stream_of_that_name_is_passed_over(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.created = 99
        rig.offer()
        until_s = time.monotonic() + 1.5
        while time.monotonic() < until_s:
            rig.work()
        assert rig.host.following is None
        rig.created = 1
        rig.offer()
        rig.work_until_following()


@pytest.mark.parametrize("come", [200, ROUND_RECORDS])
def test_what_follows_a_busy_task_gains_on_it(tmp_path: Path, come: int) -> None:
    """In every round more comes than a small step has."""
    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.add(events(0, 20_000))
        rig.offer()
        awaited(lambda: (rig.work(), "behind" in (rig.host.following or {}))[1])
        first, behind = 20_000, []
        while not behind or behind[-1] > come:
            rig.add(events(first, come))
            first += come
            rig.work()
            following = rig.host.following
            assert following is not None
            behind.append(int(str(following["behind"])))
            assert len(behind) < 200


def test_a_pointer_that_cannot_be_written_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task has taken over, and goes on: the unit and its other tasks have nothing to do with it."""

    def full(*_: object) -> None:
        raise OSError("no space left")

    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        rig.work_until_following()
        rig.change(Deepen)
        with monkeypatch.context() as patch:
            patch.setattr("railgun.host.deepening.take_over.move_to", full)
            rig.work_until("failure", "no space left")
        rig.add(events(0, 3))
        assert rig.host.is_running
        assert not (rig.place.folder / "moved_to").exists()
        rig.offer()
        awaited(lambda: (rig.work(), (rig.place.folder / "moved_to").exists())[1])
        assert rig.host.following is None


def test_one_asked_for_while_another_is_written_is_put_aside_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, held, other = threading.Event(), threading.Event(), "g" * 32
    finish = SnapshotExport.finish

    def slow(freezing: SnapshotExport) -> OwnEvents:
        begun.set()
        assert held.wait(60)
        return finish(freezing)

    with deepened_host(tmp_path) as rig:
        rig.take_all()
        with monkeypatch.context() as patch:
            patch.setattr(SnapshotExport, "finish", slow)
            rig.request(other)
            rig.change(BeginDeepening, other)
            # The lane comes to it in its own time, and must find the slow one.
            assert begun.wait(60)
        rig.request()
        rig.change(BeginDeepening)
        assert read_own(rig.own, HISTORY) is None
        held.set()
        awaited(lambda: read_own(rig.own, HISTORY) is not None)
        own = read_own(rig.own, HISTORY)
        assert own is not None
        assert own.position == rig.host.position - 1
        assert read_rows(rig.own, own).num_rows
        assert rig.host.following is None
        assert [path.name for path in rig.own.parent.iterdir()] == ["0"]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_given_up_while_it_is_opened_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    """Who gives it up has looked before anything was there."""
    verified = built_task.verified_manifest

    def given_up(*arguments: Any) -> HistoryManifest:
        found = verified(*arguments)
        (deepening_folder(rig.data, "s") / OFFER).unlink()
        if is_damaged:
            shutil.rmtree(rig.place.history / "state")
        return found

    with deepened_host(tmp_path) as rig:
        rig.begin()
        monkeypatch.setattr(built_task, "verified_manifest", given_up)
        rig.offer()
        opening = BuiltTask.open_unless_given_up
        ended: list[bool] = []
        monkeypatch.setattr(
            BuiltTask, "open_unless_given_up", lambda *each: (opening(*each), ended.append(True))[0]
        )
        awaited(lambda: (rig.work(), ended)[1])
        assert not (rig.place.folder / HISTORY).exists()
        awaited(lambda: (rig.work(), rig.host.following)[1] is None)
        assert rig.host.is_running


def test_what_was_replaced_is_let_go_beside_the_task_and_its_folder_stays_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing a task writes what its database holds in memory: events do not wait for that."""
    close, may_close = TaskProcessor.close, threading.Event()

    def held(task: TaskProcessor) -> None:
        assert may_close.wait(60)
        close(task)

    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        rig.work_until_following()
        before = rig.host.task
        folder = before.store.folder.parent
        try:
            monkeypatch.setattr(TaskProcessor, "close", held)
            rig.change(Deepen)
            rig.add(events(0, 3))
            assert rig.host.task.history == HISTORY
            rig.host.checkpoint()
            for _ in range(10):
                rig.work()
            assert (folder / "state").is_dir()
            assert not (rig.place.folder / POINTER).is_file()
        finally:
            may_close.set()

        def is_moved() -> bool:
            rig.work()
            return not (folder / "state").is_dir()

        awaited(is_moved)
        assert (rig.place.folder / POINTER).is_file()
