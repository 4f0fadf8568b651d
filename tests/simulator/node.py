"""A node of a simulated cluster: the parts of real units and of a real leader, put together as their processes do."""

import random
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import DiskCopy, NodeRecord
from railgun.host.data_folder import SNAPSHOTS
from railgun.host.fetcher import FetchRule
from railgun.host.lanes import HostLanes
from railgun.host.place import Place, task_folder
from railgun.host.reply_sink import ReplySink
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.membership import GroupMembership
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.transport import TopicPartition, Transport
from railgun.node.leader.leading import Leading
from railgun.node.parent import UnitEnded
from railgun.registry.follower import Snapshot
from railgun.registry.topics import Topics
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import MIB, TaskSettings
from railgun.unit.assignments import PlannedTasks
from railgun.unit.clock import Clock, IdleMeter
from railgun.unit.copies import UnitCopies
from railgun.unit.hosting import Hosting
from railgun.unit.hosts import UnitHosts
from railgun.unit.loop import UnitLoop
from railgun.unit.positions import Positions
from railgun.unit.query_server import QueryServer
from railgun.unit.report_reader import ReportReader
from railgun.unit.sending import Sending
from railgun.unit.snapshots import UnitSnapshots
from reservoir.errors import StorageFailedError
from reservoir.inline_executor import InlineExecutor
from tests.simulator.broker import SimulatedBroker, SimulatedTransport, SimulatedWriter
from tests.simulator.full_disk import SinkBesideDisk
from tests.simulator.haltable import HaltableCall, Stepwise
from tests.simulator.membership import Group, SimulatedMembership
from tests.simulator.transfer import DonorHost, SimulatedFetcher, SimulatedTransfer

POLICY = ClusterPolicy(copies=2, replace_after_s=8.0, moves_limit=2)
SETTINGS = TaskSettings(
    row_cache_bytes=1 << 16,
    page_cache_bytes=4 * MIB,
    chunk_cache_bytes=1 << 16,
    block_cache_bytes=1 << 20,
    write_buffer_bytes=1 << 20,
    chunk_events=16,
    segment_bytes=1 << 12,
    batch_events_max=64,
    crossings_max=64,
    checkpoint_interval_s=0.5,
    fill_rows_max=8,
    sweep_interval_s=1.0,
)
# A copy that lacks more records than this is fetched.
AFTER_RECORDS = 200
_POSITIONS_S = 0.05
_DISK_S = 5.0
# Replies that were held are acknowledged within this time, once their topic is there.
_HELD_S = 0.2
# A supervisor starts what has ended again after this time.
_AGAIN_S = 0.5


@dataclass
class Surroundings:
    """What all nodes share. snapshot: returns the present catalogue. nodes: all of them."""

    chance: random.Random
    now: Callable[[], float]
    broker: SimulatedBroker
    group: Group
    topics: Topics
    snapshot: Callable[[], Snapshot]
    nodes: list["SimulatedNode"] = field(default_factory=list)


@dataclass
class Troubles:
    """Until when, in seconds, something goes wrong with a process.

    waits: whether what waits for acknowledgements waits until they come. Otherwise it gives up, as it does in minutes.
    """

    halted_s: float = 0.0
    cut_s: float = 0.0
    slow_disk_s: float = 0.0
    slow_rounds_s: float = 0.0
    replies_stuck_s: float = 0.0
    log_stuck_s: float = 0.0
    deaf_s: float = 0.0
    waits: bool = True


class SimulatedUnit:
    """The process of a unit. It ends by `kill` or `stop`; errors of the transport and of the disk end it too.

    is_full: whether its disk is full.
    error: what ended it.
    """

    def __init__(
        self,
        around: Surroundings,
        name: CopyName,
        folder: Path,
        folder_id: str,
        is_full: Callable[[], bool],
        transfer: SimulatedTransfer,
    ) -> None:
        self._around, self.name = around, name
        self.troubles = Troubles()
        self.error: TransportError | StorageFailedError | None = None
        self.is_leaving = False
        self.executor = InlineExecutor(around.chance.randrange)
        self._next_s = self._look_s = around.now()
        self.transport, self.reports = (around.broker.client(f"{name} {use}") for use in ("log", "reports"))
        topics, clock = around.topics, Clock(around.now, self.stall, lambda: int(1000 * around.now()))
        self._reader = ReportReader(
            self.reports,
            [TopicPartition(topics.positions, 0), TopicPartition(topics.assignment, 0)],
            clock,
        )
        generation = round(around.now() * 1000) + 1
        self.copies = UnitCopies(name, generation, self._reader.drain, topics.assignment, clock=clock)
        self._sending = sending = Sending(self.transport, topics, clock)
        environment = TaskEnvironment(
            now=around.now, used_s=lambda: 0.0, randomness=around.chance.randbytes, executor=self.executor
        )
        self._lanes = HostLanes(self.executor, 2)
        hosting = Hosting(
            self.transport,
            sending,
            environment,
            self._lanes,
            f".{name.unit}",
            timeout_s=0.0,
            clock=clock,
            rule=FetchRule(AFTER_RECORDS),
        )

        def make(place: Place) -> TaskHost:
            host = hosting.host(place, SETTINGS)
            host.sink = cast(ReplySink, SinkBesideDisk(host.sink, is_full))
            return host

        fetcher = SimulatedFetcher(transfer, self.copies.donors)
        self.loop = UnitLoop(
            self.transport,
            topics,
            PlannedTasks(name, folder_id, lambda: self.copies.plan),
            Positions(self.reports, topics, name, self.copies, _POSITIONS_S, clock=clock),
            sending,
            self.copies,
            UnitHosts(lambda places: [make(each) for each in places], lambda _: None, clock, fetcher),
            folder,
            QueryServer(self.transport, topics, sending.answer_query, clock),
            UnitSnapshots(folder / SNAPSHOTS, lambda name, error: None),
            self._lanes.questions,
            removes=False,
            grace_s=60.0,
            waiting=IdleMeter(around.now, lambda: 0.0),
            clock=clock,
        )
        self._known, self._held_s = -1, -_HELD_S

    def step(self) -> None:
        """Let it do what is due now. What ends its process is in `error`."""
        now_s, troubles, chance = self._around.now(), self.troubles, self._around.chance
        if now_s < troubles.halted_s:
            return
        self.transport.is_cut = self.reports.is_cut = now_s < troubles.cut_s
        self.transport.is_stuck = now_s < troubles.replies_stuck_s
        self.transport.is_deaf = now_s < troubles.log_stuck_s
        self.reports.is_deaf = now_s < troubles.deaf_s
        for client in (self.transport, self.reports):
            client.advance()
        try:
            if now_s >= self._look_s:
                self._look_s = now_s + chance.uniform(0.0, 0.08)
                self._look()
            if now_s >= self._next_s:
                self._next_s = now_s + chance.uniform(0.0, 0.08)
                if now_s < troubles.slow_rounds_s:
                    self._next_s += chance.uniform(0.1, 1.0)
                self._round()
        except (TransportError, StorageFailedError) as error:
            self.error = error

    def _look(self) -> None:
        try:
            self._reader.look()
        except TransportError:
            self._look_s += 0.1

    def _round(self) -> None:
        snapshot = self._around.snapshot()
        if snapshot.catalog.last_place != self._known and self._around.chance.random() < 0.2:
            self._known = snapshot.catalog.last_place
            self.loop.follow(snapshot)
        if not self.has_slow_disk:
            for _ in range(self._around.chance.randrange(4)):
                self.executor.run_next()
        # What is asked beside the loop keeps it not waiting.
        self.transport.wait_in_vain = self.stall
        try:
            self.loop.round()
        finally:
            self.transport.wait_in_vain = lambda seconds: None

    @property
    def has_slow_disk(self) -> bool:
        """Whether nothing runs beside the loop at present: it waits for the disk, or for acknowledgements."""
        troubles, now_s = self.troubles, self._around.now()
        if len(self._sending.held):
            self._held_s = now_s
        stuck_s = max(troubles.replies_stuck_s, troubles.cut_s) if troubles.waits else 0.0
        return now_s < max(troubles.slow_disk_s, stuck_s, self._held_s + _HELD_S)

    def leave(self) -> None:
        """Begin to stop, as after SIGTERM. The simulation calls `stop` when no copy answers any more."""
        self.is_leaving = True
        self.copies.leave()

    def stop(self) -> None:
        """Stop, with checkpoints. An error of the transport ends it at once."""
        try:
            self.loop.stop()
        except TransportError:
            self.kill()
            return
        self._close()
        for client in (self.transport, self.reports):
            client.close()

    def kill(self) -> None:
        """End at once."""
        for client in (self.transport, self.reports):
            client.crash()
        for host in self.loop.hosts.values():
            host.sink.give_up()
        self.loop.abandon()
        self._close()

    def _close(self) -> None:
        while self.executor.run_next():
            pass
        self._lanes.close()

    def stall(self, seconds: float) -> None:
        """Let its loop stand still, as when it waits for the disk. It is halted no more than that: it reads reports."""
        self._next_s = max(self._next_s, self._around.now() + seconds)


@dataclass
class SimulatedNode:
    """A node, which may be up or down.

    units: how many units it has at its next start.
    running: the units, and when one that has ended is started again.
    is_leaving: whether it ends in order; then nothing of it is started again.
    full_disk_s: until when its disk is full.
    disks: how many disks it has had; each loss gives it a new one.
    fetched: how many fetches have brought all.
    """

    around: Surroundings
    name: str
    folder: Path
    units: int
    is_up: bool = False
    is_leaving: bool = False
    running: list[SimulatedUnit | float] = field(default_factory=list)
    leading: Leading | None = None
    ended: deque[UnitEnded] = field(default_factory=deque)
    halted_s: float = 0.0
    leader_halted_s: float = 0.0
    full_disk_s: float = 0.0
    disks: int = 1
    fetched: int = 0

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.is_up = True
        shutil.rmtree(self.folder / "snapshots", ignore_errors=True)
        self.transfer = SimulatedTransfer(
            self.around.chance, self.around.now, self._donor, self._count, self._is_full
        )
        self._incarnation = round(self.around.now() * 1000) + 1
        self.running = [self._unit(number) for number in range(self.units)]
        self._lead()

    @property
    def live_units(self) -> list[SimulatedUnit]:
        """The units whose process runs."""
        return [each for each in self.running if isinstance(each, SimulatedUnit)]

    @property
    def folder_id(self) -> str:
        return f"disk {self.disks} of {self.name}"

    def step(self) -> None:
        """Let its processes do what is due, and start again those that have ended."""
        now_s = self.around.now()
        if now_s < self.halted_s:
            return
        self.transfer.step()
        for number, unit in enumerate(self.running):
            if isinstance(unit, float):
                if now_s >= unit and not self.is_leaving:
                    self.running[number] = self._unit(number)
                continue
            if self.is_leaving and not unit.is_leaving:
                unit.leave()
            unit.step()
            if unit.error is not None:
                self.kill_unit(number)
            elif unit.is_leaving and not unit.copies.answers_anything and not unit.has_slow_disk:
                unit.stop()
                self._end(number)
        if self.is_leaving:
            self._step_end(now_s)
        else:
            self._step_leader(now_s)

    def kill_unit(self, number: int) -> None:
        """End the process of one unit; it is started again."""
        unit = self.running[number]
        if isinstance(unit, SimulatedUnit):
            unit.kill()
            self._end(number)
            self.ended.append(UnitEnded(number, round(self.around.now() * 1000)))

    def kill(self) -> None:
        """End all processes."""
        for unit in self.live_units:
            unit.kill()
        if self.leading is not None:
            self._leader_round.end()
            self._leader_client.crash()
        self.running, self.leading, self.is_up, self.is_leaving = [], None, False, False
        self.ended.clear()

    def leave(self) -> None:
        """Begin to end in order, as after SIGTERM."""
        self.is_leaving = True

    def stay(self) -> None:
        """End no more: what has ended of it is started again."""
        self.is_leaving = False
        if self.leading is None:
            self._lead()

    def trouble(self, **until_s: float) -> None:
        """Make trouble for all its units until a time."""
        for unit in self.live_units:
            unit.troubles.waits = self.around.chance.random() < 0.5
            for name, value in until_s.items():
                setattr(unit.troubles, name, value)

    def _step_end(self, now_s: float) -> None:
        """Let the process that leads end, and the node once its units have ended."""
        if self.leading is not None and now_s >= self.leader_halted_s:
            self._leader_round.end()
            if not self._leader_client.is_cut:
                self.around.group.leave(self.name)
            self._leader_client.close()
            self.leading = None
        if self.leading is None and not self.live_units:
            self.running, self.is_up, self.is_leaving = [], False, False

    def _end(self, number: int) -> None:
        self.running[number] = self.around.now() + _AGAIN_S

    def _unit(self, number: int) -> SimulatedUnit:
        return SimulatedUnit(
            self.around,
            CopyName(self.name, number),
            self.folder,
            self.folder_id,
            self._is_full,
            self.transfer,
        )

    def lose_disk(self) -> None:
        """End all processes, and lose all data."""
        if self.is_up:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.disks += 1

    def _is_full(self) -> bool:
        return self.around.now() < self.full_disk_s

    def _count(self) -> None:
        self.fetched += 1

    def _donor(self, copy: CopyName, task: TaskKey) -> DonorHost | None:
        """Return a copy of a node that runs."""
        for node in self.around.nodes:
            for unit in node.live_units if node.name == copy.node else ():
                host = unit.loop.hosts.get(task)
                if unit.name == copy and host is not None and host.is_running:
                    now_s = self.around.now()
                    is_halted = now_s < max(node.halted_s, unit.troubles.halted_s)
                    return DonorHost(host, node.folder, is_halted)
        return None

    def _lead(self) -> None:
        around = self.around
        self._leader_client = client = around.broker.client(f"{self.name} leader")
        membership = SimulatedMembership(around.group, self.name, lambda: client.is_cut)
        self._leader_round = HaltableCall(lambda: leading.round(), self._leader_halts)
        step = self._leader_round.step
        self._next_s, self._disk_s, self._disk = around.now(), -_DISK_S, list[DiskCopy]()
        self.leading = leading = Leading(
            cast(Transport, Stepwise(client, step)),
            around.topics,
            cast(GroupMembership, Stepwise(membership, step)),
            ObservedCluster(POLICY, around.now()),
            lambda: around.snapshot().catalog,
            self._record,
            lambda: self._writer(client, step),
            around.now,
            self.ended,
        )

    def _writer(self, client: SimulatedTransport, step: Callable[[], None]) -> KafkaSoleWriter:
        step()
        made = SimulatedWriter(client, self.around.broker, self.around.topics.assignment)
        step()
        return cast(KafkaSoleWriter, Stepwise(made, step))

    def halt_leader(self, steps: int, seconds: float) -> None:
        """Let the process that leads stand still after so many steps of its rounds, for so long."""
        self._leader_halts_for_s = seconds
        self._leader_round.halt_after(steps)

    def let_leader_go(self) -> None:
        """Let the process that leads stand still no more."""
        self.leader_halted_s = 0.0
        self._leader_round.halt_after(None)

    def _leader_halts(self) -> None:
        self.leader_halted_s = self.around.now() + self._leader_halts_for_s

    def _step_leader(self, now_s: float) -> None:
        if self.leading is None or now_s < max(self._next_s, self.leader_halted_s):
            return
        self._next_s = now_s + self.around.chance.uniform(0.05, 0.25)
        self._leader_client.is_cut = any(now_s < unit.troubles.cut_s for unit in self.live_units)
        try:
            self._leader_round.run()
        except TransportError:
            # The supervisor starts it again.
            self._leader_client.crash()
            self._lead()
            self._next_s = now_s + _AGAIN_S

    def _record(self) -> NodeRecord:
        now_s = self.around.now()
        if now_s - self._disk_s >= _DISK_S:
            self._disk_s, self._disk = now_s, self._on_disk()
        return NodeRecord(
            name=self.name,
            folder=self.folder_id,
            incarnation=self._incarnation,
            host=self.name,
            units=self.units,
            release="0",
            disk=self._disk,
        )

    def _on_disk(self) -> list[DiskCopy]:
        return [
            DiskCopy(**key._asdict())
            for key in self.around.snapshot().catalog.task_keys
            if task_folder(self.folder, key.stream, key.created, key.partitioner, key.partition).is_dir()
        ]


def up(nodes: Sequence[SimulatedNode]) -> list[SimulatedNode]:
    """The nodes that run."""
    return [node for node in nodes if node.is_up]
