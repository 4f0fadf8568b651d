"""The records of the topics `nodes` and `assignment`: what nodes say of themselves, orders to them, and the plan.

FORMAT.md describes them. Nodes, front-ends and units read and write them by this module.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from railgun.catalog.task_key import TaskKey
from railgun.catalog.version import CATALOG_VERSION
from railgun.cluster.copies import CopyName, Cut, Gap
from railgun.cluster.plan import Copies, Drain, LostCopy, Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.reports import VERSION as REPORT_VERSION
from railgun.cluster.reports import OfTask
from railgun.messaging.errors import UnreadableRecordError

VERSION: Final = 1
_PLAN_KEY: Final = b"plan"
READS: Final = {
    "nodes": VERSION,
    "plan": VERSION,
    "reports": REPORT_VERSION,
    "catalog": CATALOG_VERSION,
}
"""The newest version of each kind of record that this release reads."""


class RecordError(UnreadableRecordError):
    """A record of these topics that cannot be read."""


class NewerRecordError(RecordError):
    """A record of a version that this release does not know."""


class DiskCopy(OfTask, kw_only=True):
    """A task's data in a node's folder, whether a copy is open or not.

    size_bytes: the size of its files a moment ago, rounded to two digits.
    has_checkpoint: whether it may have a checkpoint, so that its state can go on from there.
    """

    size_bytes: int = 0
    has_checkpoint: bool = True


class EndedUnit(msgspec.Struct, kw_only=True, frozen=True):
    """A unit whose process has ended by itself within the last ENDED_LATELY_S.

    times: how often.
    last_ms: when it did the last time, in ms since 1970.
    error: why it did then, in one line.
    """

    unit: int
    times: int
    last_ms: int
    error: str


class NodeRecord(msgspec.Struct, kw_only=True, tag_field="kind", tag="node"):
    """A node's record about itself. The keys are those of FORMAT.md.

    said_ms: when it was written, in ms since 1970.
    folder: the id of the node's data folder.
    incarnation: tells the starts of the node apart, and grows.
    disk: the tasks of which the node has data, and how much.
    histories: which built histories the node has; None if its release does not say.
    transfer: where the node serves snapshots of its tasks, as a URL; empty if it serves none.
    transfer_key: with which requests to it are signed. It is shown nowhere.
    transfer_reason: why it serves none.
    reads: like READS; empty if the node's release does not say.
    unread: why the node cannot read the newest plan; empty if it can.
    ended: its units that have ended by themselves lately; empty if its release does not say.
    """

    version: int = VERSION
    said_ms: int = 0
    name: str
    folder: str
    incarnation: int
    host: str
    rack: str = ""
    units: int
    release: str
    disk: list[DiskCopy] = []
    histories: list[str] | None = None
    transfer: str = ""
    transfer_key: str = ""
    transfer_reason: str = ""
    reads: dict[str, int] = {}
    unread: str = ""
    ended: list[EndedUnit] = []

    @property
    def key(self) -> bytes:
        """The key of the record."""
        return self.name.encode()

    def __repr__(self) -> str:
        # The record may stand in a log, or in the message of an error.
        shown = (name for name in self.__struct_fields__ if name != "transfer_key")
        return f"NodeRecord({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def drain_key(node: str) -> bytes:
    """Return the key of an order to a node. No node's name is such a key."""
    return f"{node}/drain".encode()


class DrainOrder(msgspec.Struct, kw_only=True, tag_field="kind", tag="drain"):
    """An order to empty a node, or to use it again.

    asked_ms: grows with each order to the node.
    is_on: False: use it again.
    fewer_copies: whether tasks may have fewer copies for it.
    """

    version: int = VERSION
    node: str
    asked_ms: int
    is_on: bool
    fewer_copies: bool = False

    @property
    def key(self) -> bytes:
        """The key of the record."""
        return drain_key(self.node)


class AcceptedCut(OfTask, kw_only=True, tag_field="kind", tag="cut"):
    """An operator has accepted that the log of a task has lost records at its end, or is another one than before. The
    keys are those of FORMAT.md.
    """

    version: int = VERSION
    offset: int
    leader_epoch: int
    topic_id: str = ""
    begin: int = 0

    @property
    def cut(self) -> Cut:
        """What was accepted."""
        return Cut(self.offset, self.leader_epoch, self.topic_id, self.begin)

    @property
    def key(self) -> bytes:
        """The key of the record. No node's name is such a key."""
        return f"{self.task.full_name}/cut".encode()


class AcceptedGap(OfTask, kw_only=True, tag_field="kind", tag="gap"):
    """An operator has accepted that a task continues behind a gap of its log. The keys are those of FORMAT.md."""

    version: int = VERSION
    gap: Gap

    @property
    def key(self) -> bytes:
        """The key of the record. No node's name is such a key."""
        return f"{self.task.full_name}/gap".encode()


def front_end_key(number: int) -> bytes:
    """Return the key of what a front-end says of itself. No node's name is such a key."""
    return f"frontend/{number}".encode()


class FrontEndRecord(msgspec.Struct, kw_only=True, tag_field="kind", tag="frontend"):
    """A front-end's record about itself, which it writes at its start. The keys are those of FORMAT.md."""

    version: int = VERSION
    said_ms: int
    number: int
    name: str
    release: str
    reads: dict[str, int] = {}

    @property
    def key(self) -> bytes:
        """The key of the record."""
        return front_end_key(self.number)


Statement = NodeRecord | DrainOrder | AcceptedCut | AcceptedGap | FrontEndRecord
"""A record of the topic `nodes`."""


class _Version(msgspec.Struct):
    version: int = VERSION


class _PlannedDrain(msgspec.Struct, kw_only=True):
    asked_ms: int
    fewer_copies: bool = False
    refusal: str = ""


class _PlanHeader(msgspec.Struct, kw_only=True, tag_field="kind", tag="plan"):
    version: int = VERSION
    epoch: int
    incarnation: int
    cause: str
    policy: ClusterPolicy | None = None
    drains: dict[str, _PlannedDrain] = {}


class _PlannedLog(msgspec.Struct, kw_only=True):
    topic_id: str
    begin: int


class _PlannedPartition(msgspec.Struct, kw_only=True):
    copies: list[tuple[str, int, str, bool]]
    target: list[tuple[str, int]] = []
    lost: dict[str, tuple[int, bool]] = {}
    cut: tuple[int, int] | None = None
    log: _PlannedLog | msgspec.UnsetType = msgspec.UNSET
    gap: Gap | msgspec.UnsetType = msgspec.UNSET


class _PlannedTasks(msgspec.Struct, kw_only=True, tag_field="kind", tag="tasks"):
    version: int = VERSION
    epoch: int
    incarnation: int
    stream: str
    created: int
    partitioner: str
    partitions: dict[int, _PlannedPartition]


class _RawTasks(msgspec.Struct):
    """Tasks of the plan before their partitions are decoded."""

    stream: str
    created: int
    partitioner: str
    partitions: dict[int, msgspec.Raw]


_encode = msgspec.json.Encoder().encode
_decode_statement: Callable[[bytes], Statement] = msgspec.json.Decoder(Statement).decode
_decode_planned = msgspec.json.Decoder(_PlanHeader | _PlannedTasks).decode
_decode_tasks = msgspec.json.Decoder(_PlannedTasks).decode
_decode_raw_tasks = msgspec.json.Decoder(_RawTasks).decode
_decode_partition = msgspec.json.Decoder(_PlannedPartition).decode
_decode_version = msgspec.json.Decoder(_Version).decode


def encode_statement(statement: Statement) -> bytes:
    """Return the record of the topic `nodes`."""
    return _encode(statement)


def decode_statement(record: bytes) -> Statement:
    """Return what a record of the topic `nodes` says. Raises RecordError, and NewerRecordError."""
    try:
        _check_version(_decode_version(record).version, "a node's record")
        return _decode_statement(record)
    except msgspec.MsgspecError as error:
        raise RecordError(f"a node's record that cannot be read: {error}") from None


def _check_version(version: int, what: str) -> None:
    if version > VERSION:
        raise NewerRecordError(f"{what} is of version {version}; this release reads {VERSION}")


def encode_plan(plan: Plan, before: Plan, incarnation: int) -> list[tuple[bytes, bytes]]:
    """Return the (key, record) pairs that make a plan of the one before: those of tasks that differ, and the header.

    incarnation: that of the node that leads.
    """
    groups: dict[tuple[str, int, str], dict[int, _PlannedPartition]] = {}
    changed = set()
    parts: Sequence[tuple[Mapping[TaskKey, object], Mapping[TaskKey, object]]] = (
        (plan.copies, before.copies),
        (plan.target, before.target),
        (plan.lost, before.lost),
        (plan.cuts, before.cuts),
        (plan.gaps, before.gaps),
    )
    for name, copies in plan.copies.items():
        target, cut = plan.target.get(name, ()), plan.cuts.get(name)
        group = name.stream, name.created, name.partitioner
        groups.setdefault(group, {})[name.partition] = _PlannedPartition(
            copies=[(*each.copy, each.folder, each.is_going) for each in copies],
            target=[(copy.node, copy.unit) for copy in target],
            lost={
                node: (lost.incarnation, lost.has_failed) for node, lost in plan.lost.get(name, {}).items()
            },
            cut=None if cut is None else (cut.offset, cut.leader_epoch),
            log=_planned_log(cut),
            gap=plan.gaps.get(name, msgspec.UNSET),
        )
        if any(each.get(name) != of.get(name) for each, of in parts):
            changed.add(group)
    changed |= {(name.stream, name.created, name.partitioner) for name in before.copies} - set(groups)
    records = []
    for group in sorted(changed):
        stream, created, partitioner = group
        body = _PlannedTasks(
            epoch=plan.epoch,
            incarnation=incarnation,
            stream=stream,
            created=created,
            partitioner=partitioner,
            partitions=groups.get(group, {}),
        )
        records.append((f"{stream}.{created}/{partitioner}".encode(), _encode(body)))
    drains = {
        node: _PlannedDrain(asked_ms=drain.asked_ms, fewer_copies=drain.fewer_copies, refusal=drain.refusal)
        for node, drain in plan.drains.items()
    }
    header = _PlanHeader(
        epoch=plan.epoch, incarnation=incarnation, cause=plan.cause, policy=plan.policy, drains=drains
    )
    return [*records, (_PLAN_KEY, _encode(header))]


def _planned_log(cut: Cut | None) -> _PlannedLog | msgspec.UnsetType:
    if cut is None or not cut.topic_id:
        return msgspec.UNSET
    return _PlannedLog(topic_id=cut.topic_id, begin=cut.begin)


class _PlanRecords:
    """The records that make a plan: its header, and those of all tasks as they were when it came. Any thread may use
    it.
    """

    def __init__(self, header: _PlanHeader, tasks: Sequence[bytes]) -> None:
        self.header, self._records = header, tasks

    @property
    def drains(self) -> dict[str, Drain]:
        return {
            node: Drain(drain.asked_ms, drain.fewer_copies, drain.refusal)
            for node, drain in self.header.drains.items()
        }

    @cached_property
    def plan(self) -> Plan:
        """The plan. The first access builds it, which takes long if there are many tasks."""
        header, tasks = self.header, [_decode_tasks(record) for record in self._records]
        return Plan(
            header.epoch,
            dict(_copies(tasks)),
            dict(_target(tasks)),
            header.cause,
            self.drains,
            header.policy,
            dict(_lost(tasks)),
            dict(_cuts(tasks)),
            {name: planned.gap for name, planned in _partitions(tasks) if planned.gap is not msgspec.UNSET},
        )


class PlanReader:
    """Makes the plan of the records of the topic, which come in order. A record of an older epoch, or of the same epoch
    by another leader before, is left out. A task with a word that this release does not know stays as it was planned.

    One thread takes records. Any thread may ask for the plan, which is built only then: front-ends read every plan and
    seldom need one.
    """

    def __init__(self) -> None:
        self._newest = _PlanRecords(_PlanHeader(epoch=0, incarnation=0, cause=""), [])
        # Kept as bytes: decoded, they would be very many objects for the garbage collector to visit.
        self._tasks: dict[tuple[str, int, str], bytes] = {}

    @property
    def plan(self) -> Plan:
        """The plan as of the last header that was taken in; the same object until the next one."""
        return self._newest.plan

    @property
    def policy(self) -> ClusterPolicy | None:
        """The policy of that plan. The plan is not built for it."""
        return self._newest.header.policy

    @property
    def drains(self) -> Mapping[str, Drain]:
        """The decisions of that plan on orders to empty nodes. The plan is not built for them."""
        return self._newest.drains

    def take(self, record: bytes) -> bool:
        """Take in a record. Returns whether it completes a plan. Raises RecordError, and NewerRecordError."""
        try:
            _check_version(_decode_version(record).version, "the plan")
            try:
                planned = _decode_planned(record)
            except msgspec.ValidationError:
                record = self._mended(record)
                planned = _decode_planned(record)
        except msgspec.MsgspecError as error:
            raise RecordError(f"a record of the plan that cannot be read: {error}") from None
        newest = self._newest.header
        if (planned.epoch, planned.incarnation) < (newest.epoch, newest.incarnation):
            return False
        if isinstance(planned, _PlannedTasks):
            self._tasks[planned.stream, planned.created, planned.partitioner] = record
            return False
        self._newest = _PlanRecords(planned, list(self._tasks.values()))
        return True

    def _mended(self, record: bytes) -> bytes:
        """Return a record of tasks in which those that cannot be read are as they were planned before. Those that were
        not planned before are left out.

        Raises msgspec.ValidationError if it is no record of tasks.
        """
        new = _decode_raw_tasks(record)
        before = self._tasks.get((new.stream, new.created, new.partitioner))
        known = {} if before is None else _decode_raw_tasks(before).partitions
        kept = {
            number: partition if _is_readable(partition) else known.get(number)
            for number, partition in new.partitions.items()
        }
        partitions = {number: partition for number, partition in kept.items() if partition is not None}
        return _encode({**msgspec.json.decode(record), "partitions": partitions})


def _is_readable(partition: msgspec.Raw) -> bool:
    try:
        _decode_partition(partition)
    except msgspec.ValidationError:
        return False
    return True


def _copies(tasks: Sequence[_PlannedTasks]) -> Iterator[tuple[TaskKey, Copies]]:
    for name, planned in _partitions(tasks):
        yield (
            name,
            tuple(
                PlannedCopy(CopyName(node, unit), folder, is_going)
                for node, unit, folder, is_going in planned.copies
            ),
        )


def _target(tasks: Sequence[_PlannedTasks]) -> Iterator[tuple[TaskKey, tuple[CopyName, ...]]]:
    for name, planned in _partitions(tasks):
        yield name, tuple(CopyName(*copy) for copy in planned.target)


def _lost(tasks: Sequence[_PlannedTasks]) -> Iterator[tuple[TaskKey, Mapping[str, LostCopy]]]:
    for name, planned in _partitions(tasks):
        if planned.lost:
            yield name, {node: LostCopy(*lost) for node, lost in planned.lost.items()}


def _cuts(tasks: Sequence[_PlannedTasks]) -> Iterator[tuple[TaskKey, Cut]]:
    for name, planned in _partitions(tasks):
        if planned.cut is not None:
            log = planned.log
            yield (
                name,
                Cut(*planned.cut) if log is msgspec.UNSET else Cut(*planned.cut, log.topic_id, log.begin),
            )


def _partitions(tasks: Sequence[_PlannedTasks]) -> Iterator[tuple[TaskKey, _PlannedPartition]]:
    for each in tasks:
        for partition, planned in each.partitions.items():
            yield TaskKey(each.stream, each.created, each.partitioner, partition), planned
