"""A task whose topic was deleted and made anew: it is not opened, and nothing on disk is changed."""

import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import Cut, Gap, LogPoint
from railgun.host.lanes import HostLanes
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.errors import TopicMissingError
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics
from railgun.state.stored import StoredState
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import LogCutError, LogReplacedError, StateLeftBehindError
from railgun.task.meta import Crossing, decode_meta
from railgun.task.recovery import split_meta
from railgun.task.settings import TaskIdentity
from railgun.unit.hosting import Hosting
from railgun.unit.sending import Sending
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from tests.unit.local_units import SMALL, awaited
from tests.unit.processes import DEFINITIONS, event

_TOPICS = Topics()
_WHERE = TopicPartition(_TOPICS.tasks("s", "card"), 0)


class LogWithIds(EmbeddedLog):
    """topic_id: of all its topics.  is_gone: whether these are not there."""

    topic_id, is_gone = "first", False

    def end_offset(self, topic: str, partition: int) -> int:
        if self.is_gone:
            raise TopicMissingError(topic)
        return super().end_offset(topic, partition)

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(super().topic_ids(topics), self.topic_id)

    def release(self, topic: str, partition: int) -> None:
        """Nothing is read ahead here."""

    def fill(self, events: int) -> None:
        """Make the topic, with definitions and events."""
        definitions = parse_definitions(DEFINITIONS)
        changes: list[Change] = [PutStream(1, definitions.streams["s"], 1)]
        changes += [AddMetric(place, metric) for place, metric in enumerate(definitions.metrics, 2)]
        if _WHERE.topic not in self.topics():
            self.create_topic(_WHERE.topic, 2)
        self.append(*_WHERE, [encode_control(change_to_json(change)) for change in changes])
        for number in range(events):
            values = list(event(number).values())
            self.append(*_WHERE, [encode_event(1, str(number), values[1], values)])

    def replace(self, events: int) -> None:
        """Delete the topic, and make it anew."""
        self.delete_topic(_WHERE.topic)
        self.topic_id = "second"
        self.fill(events)


class Task:
    """A copy of the task in a folder."""

    def __init__(self, log: LogWithIds, folder: Path) -> None:
        self._log, self.folder = log, folder / "task"
        self._environment = TaskEnvironment()
        self.events = 0
        self._lanes = HostLanes(self._environment.executor, 1)

    def hosting(self) -> Hosting:
        """That of another process: it knows no ids yet."""
        return Hosting(self._log, Sending(self._log, _TOPICS), self._environment, self._lanes)

    def opened(
        self, cut: Cut | None = None, hosting: Hosting | None = None, gap: Gap | None = None
    ) -> TaskHost:
        identity = TaskIdentity("s", "card", 0, bytes(16))
        ready = self.folder.with_name("ready")
        place = Place(TaskKey("s", 1, "card", 0), identity, _WHERE, self.folder, ready, cut, gap)
        host = (hosting or self.hosting()).host(place, SMALL)
        host.open()
        return host

    def play(self, cut: Cut | None = None) -> int:
        """Open it, let it process its log, and close it with a checkpoint. Returns its position."""
        host = self.opened(cut)
        try:
            while host.position < self._log.end_offset(*_WHERE):
                host.take(self._log.read(*_WHERE, host.position, 64, 1 << 20))
            host.checkpoint()
            self.events = host.task.reservoir.stats().open_rows
            return host.position
        finally:
            host.close()

    def committed_id(self) -> str:
        stored = StoredState(self.folder / "state")
        try:
            found = stored.commit()
        finally:
            stored.close()
        assert found is not None
        return decode_meta(split_meta(found[1])[0], "here").topic_id

    def close(self) -> None:
        self._lanes.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogWithIds]:
    opened = LogWithIds(tmp_path / "log", Durability.OS)
    opened.fill(20)
    yield opened
    opened.close()


@pytest.fixture
def task(log: LogWithIds, tmp_path: Path) -> Iterator[Task]:
    made = Task(log, tmp_path)
    yield made
    made.close()


def _bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*.seg"))}


@pytest.mark.parametrize("events", [3, 20, 60])
def test_another_topic_is_not_read_on(log: LogWithIds, task: Task, events: int) -> None:
    """The new log is shorter than the state, as long, or longer; epochs are those of one leader."""
    position = task.play()
    assert (position, task.committed_id()) == (position, "first")
    assert task.play() == position
    before = _bytes_of(task.folder)
    log.replace(events)
    with pytest.raises(LogReplacedError, match=r"id first.*id second") as raised:
        task.opened()
    assert raised.value.topic_id == "first"
    assert (_bytes_of(task.folder), task.committed_id()) == (before, "first")


def test_a_checkpoint_without_an_id_takes_the_present_one(log: LogWithIds, task: Task) -> None:
    log.topic_id = ""
    position = task.play()
    assert task.committed_id() == ""
    log.topic_id = "first"
    log.append(*_WHERE, [encode_event(1, "x", 5, list(event(20).values()))])
    assert task.play() == position + 1
    assert task.committed_id() == "first"
    # What length and epochs tell is told as before where the id is not known.
    log.topic_id = ""
    log.replace(3)
    log.topic_id = ""
    with pytest.raises(LogCutError):
        task.opened()


def test_it_does_so_though_no_record_comes(log: LogWithIds, task: Task) -> None:
    log.topic_id = ""
    position = task.play()
    log.topic_id = "first"
    host = task.opened()
    awaited(lambda: (host.work(), host.task.checkpoints.taken)[1] > 0)
    host.close()
    assert (host.position, task.committed_id()) == (position, "first")


def test_a_state_without_a_record_fits_every_topic(log: LogWithIds, task: Task) -> None:
    log.delete_topic(_WHERE.topic)
    log.create_topic(_WHERE.topic, 2)
    assert task.play() == 0
    assert task.committed_id() == "first"
    log.replace(7)
    assert task.play() > 7
    assert task.committed_id() == "second"


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("events", [3, 60])
def test_a_state_of_another_topic_is_made_anew_once_that_is_accepted(
    log: LogWithIds, task: Task, events: int, *, is_known: bool
) -> None:
    """is_known: whether the state has the id of its topic."""
    log.topic_id = "first" if is_known else ""
    task.play()
    assert task.events == 20
    log.replace(events)
    cut = Cut(0, -1, "second")
    position = task.play(cut)
    assert (task.events, task.committed_id()) == (events, "second")
    # It stands for good, and makes no state anew that is of the accepted topic.
    log.append(*_WHERE, [encode_event(1, "x", 5, list(event(20).values()))])
    assert task.play(cut) == position + 1
    assert task.events == events + 1


def test_an_order_counts_at_once_though_the_id_was_asked_for_a_moment_ago(
    log: LogWithIds, task: Task
) -> None:
    """The copy would go on from its old state, and be stopped for good when the ids are compared next."""
    task.play()
    hosting = task.hosting()
    task.opened(hosting=hosting).close()
    log.replace(60)
    host = task.opened(Cut(0, -1, "second"), hosting)
    assert (host.position, host.task.topic_id) == (0, "second")
    host.close()
    # What it reports of its log still counts.
    assert host.topic_id == "second"


def test_a_state_that_was_being_deleted_at_a_crash_is_made_anew(
    log: LogWithIds, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files go one after another: a part of them is no state that could be opened."""
    task.play()
    log.replace(5)
    cut = Cut(0, -1, "second")

    def cut_off(path: Path, *_: object, **__: object) -> None:
        if Path(path).exists():
            for file in (Path(path) / "state").glob("[!C]*"):
                file.unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", cut_off)
        with pytest.raises(KeyboardInterrupt):
            task.opened(cut)
    task.play(cut)
    assert (task.events, task.committed_id()) == (5, "second")
    assert [path.name for path in task.folder.parent.iterdir() if path.name.startswith("task")] == ["task"]


def test_copies_begin_at_the_definitions(log: LogWithIds, task: Task) -> None:
    """Events that came into the new topic before its definitions are not processed."""
    task.play()
    log.delete_topic(_WHERE.topic)
    log.create_topic(_WHERE.topic, 2)
    log.topic_id = "second"
    before = [encode_event(1, f"b{number}", 5, list(event(number).values())) for number in range(30)]
    begin = log.append(*_WHERE, before) + len(before)
    log.fill(4)
    cut = Cut(begin, -1, "second", begin)
    position = task.play(cut)
    assert (task.events, position) == (4, log.end_offset(*_WHERE))
    # So does a copy that has no state yet, and it goes on from its checkpoint.
    shutil.rmtree(task.folder)
    assert task.play(cut) == position
    assert task.events == 4
    log.fill(6)
    task.play(cut)
    assert task.events == 6
    # A state of records from before a later order is made anew.
    log.append(*_WHERE, before[:1])
    begin = log.end_offset(*_WHERE)
    log.fill(5)
    task.play(Cut(begin, -1, "second", begin))
    assert task.events == 5


def test_a_topic_that_is_replaced_once_more_is_not_accepted_yet(log: LogWithIds, task: Task) -> None:
    task.play()
    log.replace(5)
    cut = Cut(0, -1, "second")
    task.play(cut)
    log.replace(5)
    log.topic_id = "third"
    with pytest.raises(LogReplacedError, match=r"id second.*id third"):
        task.opened(cut)


def test_a_task_whose_log_has_lost_its_beginning_cannot_be_made_anew(log: LogWithIds, task: Task) -> None:
    log.topic_id = ""
    position = task.play()
    before = _bytes_of(task.folder)
    log.replace(10)
    log.topic_id = ""
    log.trim(*_WHERE, 2)
    cut = Cut(8, 0)
    with pytest.raises(
        StateLeftBehindError, match=rf"is at offset {position}.*begins at offset 2, and 0 is needed"
    ) as raised:
        task.opened(cut)
    # It counts as a copy without a state, for an order to go on behind a gap.
    assert LogPoint(raised.value.position, raised.value.leader_epoch) == LogPoint(0)
    assert _bytes_of(task.folder) == before
    # A copy that has none of the lost records stays as it is.
    shutil.rmtree(task.folder)
    log.replace(10)
    log.topic_id = ""
    reached = task.play()
    log.trim(*_WHERE, 2)
    assert task.play(Cut(reached, 0)) == reached
    assert task.events == 10


def test_it_goes_on_with_nothing_behind_a_gap_that_was_accepted(log: LogWithIds, task: Task) -> None:
    task.play()
    log.delete_topic(_WHERE.topic)
    log.fill(10)
    log.trim(*_WHERE, 8)
    begin = log.end_offset(*_WHERE)
    log.fill(0)
    cut, told = Cut(5, 1), (begin, log.end_offset(*_WHERE))
    gap = Gap(LogPoint(0), 8, 5_000, told, 9, "first")
    for other in (replace(gap, offset=7), replace(gap, topic_id="second"), replace(gap, state=LogPoint(3))):
        with pytest.raises(StateLeftBehindError):
            task.opened(cut, gap=other)
    assert task.committed_id() == "first"
    host = task.opened(cut, gap=gap)
    assert (host.position, host.task.gap) == (8, Crossing(5_000, 8, 0, -1))
    host.checkpoint()
    host.close()
    # It has no record of the log yet, and nothing of it counts as lost.
    kept = task.folder / "kept"
    kept.touch()
    host = task.opened(cut, gap=gap)
    assert (host.position, kept.exists()) == (8, True)
    host.close()


def test_a_topic_that_is_gone_is_known_by_the_state(log: LogWithIds, task: Task) -> None:
    """An order to begin anew in another topic has to know which one is lost."""
    task.play()
    log.is_gone = True
    hosting = task.hosting()
    identity = TaskIdentity("s", "card", 0, bytes(16))
    for folder, topic_id in ((task.folder, "first"), (task.folder.with_name("new"), "")):
        place = Place(TaskKey("s", 1, "card", 0), identity, _WHERE, folder, folder.with_name("ready"))
        host = hosting.host(place, SMALL)
        with pytest.raises(TopicMissingError):
            host.open()
        assert host.topic_id == topic_id
