"""What units say of their tasks, to everybody and to their supervisor, and what a front-end makes of it."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from frontend.exchange.pending_table import PendingTable
from frontend.kafka.task_states import TaskStates, at_a_glance
from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.changes import AddMetric, BeginDeepening, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.cluster.copies import CopyName
from railgun.cluster.log_room import LogRoom
from railgun.history.plan_file import deepening_folder
from railgun.history.request_files import OFFER
from railgun.host.deepening.built_task import BuiltTask
from railgun.host.host_state import OF_ONE_TASK
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.node.parent import METRICS, Parent, UnitEnded
from railgun.node.supervisor import NODE_READY
from railgun.task.errors import HistoryDamagedError
from railgun.unit.figures import UnitFigures
from railgun.unit.heartbeat import Heartbeat
from railgun.unit.loop import UnitLoop
from railgun.unit.positions import Positions
from railgun.unit.telemetry import UnitTelemetry
from railgun.wire.control_records import encode_control
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.golden.promises import held, masked
from tests.host.deepening.deepened_host import DEFINITIONS, TOPICS, DeepenedHost, deepened_host
from tests.unit.local_units import awaited
from tests.unit.lone_copies import lone_copies

NODE, UNIT, STARTED_MS = "node-1", 3, 1_700_000_000_000
OTHER_HISTORY = "g" * 32
DEFINED = parse_definitions(DEFINITIONS)
LATER = "SELECT count(*) AS later FROM s GROUP BY k OVER INFINITE"


class Unit:
    """A unit of one task. positions, heartbeats: what it has said, by what the task was doing.  front_end: what a
    front-end made of it."""

    def __init__(self, rig: DeepenedHost) -> None:
        self.rig = rig
        self.positions: dict[str, Any] = {}
        self.heartbeats: dict[str, Any] = {}
        self.front_end: dict[str, Any] = {}
        rig.log.create_topic(TOPICS.positions, 1)

    def say(self, doing: str, *, last: bool = False) -> None:
        log, host = self.rig.log, self.rig.host
        first = log.end_offset(TOPICS.positions, 0)
        positions = Positions(log, TOPICS, CopyName(NODE, UNIT), lone_copies(STARTED_MS), 0.0)
        if last:
            positions.say_last([host], 0.0)
        else:
            positions.note([host])
        awaited(lambda: log.end_offset(TOPICS.positions, 0) > first)
        (record,) = log.read(TOPICS.positions, 0, first, 10, 1 << 20).values()
        self.positions[doing] = msgspec.json.decode(record)

    def beat(self, doing: str) -> None:
        host = self.rig.host
        loop = SimpleNamespace(
            hosts={host.place.key: host}, is_ready=host.is_ready, records=7, failed_here=list
        )
        heartbeat = Heartbeat(
            cast(UnitLoop, loop), self._beats(doing), UnitTelemetry(UnitFigures(), lone_copies())
        )
        heartbeat.beat()

    def stop(self) -> None:
        with Heartbeat(cast(UnitLoop, None), self._beats("stopping"), cast(UnitTelemetry, None)):
            pass

    def _beats(self, doing: str) -> Callable[[bytes], object]:
        def write(line: bytes) -> None:
            assert line.endswith(b"\n")
            self.heartbeats[doing] = msgspec.json.decode(line)

        return write

    def add_metric(self) -> None:
        """One that cannot answer yet."""
        self.rig.place_of_change += 1
        (metric,) = metrics_from_sql(LATER, DEFINED.streams)
        self.rig.add([encode_control(change_to_json(AddMetric(self.rig.place_of_change, metric)))])


class AsOfKafka:
    """An embedded log as a front-end asks a broker's: how long it may take makes no difference."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def end_offset(self, topic: str, partition: int, _timeout_s: float = 0.0) -> int:
        return self._log.end_offset(topic, partition)


def put_nothing_aside(rig: DeepenedHost) -> None:
    """A file is in the way of the folder."""
    rig.request(OTHER_HISTORY)
    obstacle = rig.own.parents[1]
    obstacle.write_text("")
    rig.change(BeginDeepening, OTHER_HISTORY)
    awaited(lambda: rig.host.following is not None)
    obstacle.unlink()


def follow_nothing(rig: DeepenedHost) -> None:
    """What was built cannot be opened."""

    def damaged(*_: object) -> None:
        raise HistoryDamagedError("a folder", "it is damaged")

    rig.begin()
    rig.offer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BuiltTask, "open", damaged)
        rig.work_until("failure", "a folder: it is damaged")


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unit]:
    """One that has said everything that there is to say."""
    with deepened_host(tmp_path_factory.mktemp("unit")) as rig:
        unit = Unit(rig)
        unit.say("recovering")
        unit.beat("recovering")
        rig.take_all()
        unit.say("running")
        unit.beat("running")
        put_nothing_aside(rig)
        unit.say("not put aside")
        follow_nothing(rig)
        unit.say("not followed")
        rig.offer()
        rig.work_until_following()
        unit.add_metric()
        unit.say("followed, with a metric that is warming")
        unit.front_end = seen_by_a_front_end(unit)
        (deepening_folder(rig.data, "s") / OFFER).unlink()
        unit.say("stopped", last=True)
        rig.host.fail(HistoryDamagedError("a folder", "it is damaged"))
        unit.say("failed")
        unit.beat("failed")
        unit.stop()
        unit.positions = masked(unit.positions, "failure", "said_ms", "folder_id")
        yield unit


def seen_by_a_front_end(unit: Unit) -> dict[str, Any]:
    """What the status of a cluster has of the task, and of all together."""
    catalog = Catalog()
    for change in missing_changes(catalog, DEFINED)[0]:
        catalog.apply(change)
    known = TaskStates(cast(KafkaTransport, AsOfKafka(unit.rig.log)), TOPICS)
    task, *_ = catalog.entry("s").task_keys
    logs = {task: LogRoom(3, 5, CopyName(NODE, UNIT), 86_400_000, 0)}
    try:
        # Only what is said from now on tells that the task runs.
        unit.say("followed, with a metric that is warming")
        awaited(lambda: "running" in {each["state"] for each in known.tasks(catalog.entry("s"), logs)})
        tasks = list(known.tasks(catalog.entry("s"), logs))
    finally:
        known.close()
    return {
        "tasks": tasks,
        "cluster": masked(
            at_a_glance(
                tasks[0]["copies"],
                tasks,
                catalog.entry("s").task_keys,
                PendingTable(1, 10, 10),
                86_400_000,
                {"t": "it has no second replica"},
                1,
                logs,
            ),
            "log_warning",
        ),
    }


def test_positions(unit: Unit) -> None:
    held("positions.json", unit.positions)


def test_a_front_end_understands_them(unit: Unit) -> None:
    held("cluster_status.json", unit.front_end)


def test_heartbeats(unit: Unit) -> None:
    held("heartbeats.json", unit.heartbeats)


def test_questions_and_answers_of_a_unit(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    reads, writes = os.pipe()
    stopped = threading.Event()
    heard: list[UnitEnded] = []
    parent = Parent(stopped, reads, heard.append)
    parent.metrics = lambda: "what it says of itself"
    ended = msgspec.json.encode(UnitEnded(1, 1_700_000_000_000)) + b"\n"
    # Lines come as they are written, and in parts.
    for written in (METRICS + ended[:5], ended[5:] + b"no such line\n" + ended):
        os.write(writes, written)
        time.sleep(0.05)
    os.close(writes)
    assert stopped.wait(60)
    assert heard == [UnitEnded(1, 1_700_000_000_000)] * 2
    os.close(reads)
    answer = msgspec.json.decode(capfdbinary.readouterr().out)
    held(
        "unit_lines.json",
        {
            "asked": METRICS.decode(),
            "answered": answer,
            "a node is ready": NODE_READY,
            "a unit has ended": ended.decode(),
        },
    )


def test_names_of_what_stops_a_task() -> None:
    """They begin the text of a position's state."""

    def below(kind: type[BaseException]) -> Iterator[str]:
        if kind.__module__.endswith(".errors"):
            yield kind.__name__
        for each in kind.__subclasses__():
            yield from below(each)

    held("failures.json", sorted({name for kind in OF_ONE_TASK for name in below(kind)}))
