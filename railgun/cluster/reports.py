"""The reports of units (the processes that run tasks) in the topic of positions: their types, and their bytes.

See FORMAT.md. Units write them; leaders, front-ends, other units and Spark jobs read them. It does no I/O.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyReport, CopyState, LogPoint
from railgun.messaging.errors import UnreadableRecordError

VERSION: Final = 2
# The version of releases in which tasks had no copies: they wrote a record for each task.
_LEFT_OVER_VERSION: Final = 1


class ReportError(UnreadableRecordError):
    """A record of the topic that is no report."""


class OfTask(msgspec.Struct, kw_only=True):
    """The keys by which records name the task that they are about."""

    stream: str
    created: int
    partitioner: str
    partition: int

    @property
    def task(self) -> TaskKey:
        return TaskKey(self.stream, self.created, self.partitioner, self.partition)


class LeftBehind(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A state that its log does not continue. The keys are those of FORMAT.md."""

    position: int
    epoch: int = -1
    clock_ms: int | None = None


class Fetching(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The part of a copy's report that says how far the fetch of its data has come.

    donor: the copy of another node that the data comes from, as `node/unit`; empty while the copy waits.
    fetched: how many bytes are here already.
    total: how many bytes there are; 0 if that is not known yet.
    hashed: how many bytes were hashed, by the donor and here, while `total` is not known.
    """

    donor: str = ""
    fetched: int = 0
    total: int = 0
    hashed: int = 0


class CopyStatus(OfTask, kw_only=True, omit_defaults=True):
    """The part of a report about one copy. The keys are those of FORMAT.md."""

    state: CopyState
    leaving: bool = False
    failure: str = ""
    position: int
    replied: int
    epoch: int = -1
    checkpoint: int = 0
    end: int
    warming: list[str] = []
    filled: dict[str, float] = {}
    history: str = ""
    following: dict[str, Any] | None = None
    unreadable: int = 0
    lost: tuple[int, int] | None = None
    checkpoint_ms: int = 0
    replaced: str | None = None
    topic_id: str = ""
    left_behind: LeftBehind | None = None
    gap_ms: int | None = None
    fetching: Fetching | None = None
    folder_id: str = ""

    @property
    def is_opening(self) -> bool:
        """Whether the copy is being opened, or fetches its data. It may go on, or find that it cannot."""
        return self.state is CopyState.BEHIND and (not self.folder_id or self.fetching is not None)

    @property
    def goes_on(self) -> bool:
        """Whether the copy is open, and processes its log."""
        return not self.state.has_stopped and not self.is_opening

    @property
    def is_waiting(self) -> bool:
        """Whether the copy waits to fetch its data: for its turn, for a donor, or after a fetch that failed."""
        return self.fetching is not None and not self.fetching.donor

    @property
    def may_give(self) -> bool:
        """Whether another copy can be made from this one, as far as it depends on the copy."""
        return self.state.is_caught_up and self.checkpoint > 0 and not self.leaving


class UnitReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One record: a unit, and all copies of tasks that it has.

    node, unit: the name of the node, and the number of the unit on it.
    generation: when the unit started, in ms since 1970. It tells the unit's runs apart.
    interval_ms: the next report comes within this time.
    copies: a status for each copy.
    number: counts the reports of one run of the unit.
    said_ms: when it was written, in ms since 1970; 0 if it does not say.
    """

    node: str
    unit: int
    generation: int
    number: int = 0
    interval_ms: int
    copies: list[CopyStatus]
    said_ms: int = 0

    @property
    def copy(self) -> CopyName:
        """The name of the unit's copies."""
        return CopyName(self.node, self.unit)

    @property
    def announced_s(self) -> float:
        """The unit reports again within this time."""
        return self.interval_ms / 1000

    def ended(self) -> "UnitReport | None":
        """Return the report in the unit's name once its process has ended; None if that says nothing new.

        Copies that could answer are closed. A copy that was behind still is: it goes on when the unit is back.
        """
        copies = [
            msgspec.structs.replace(each, state=CopyState.CLOSED, leaving=True)
            if each.state.is_caught_up
            else each
            for each in self.copies
        ]
        return None if copies == self.copies else msgspec.structs.replace(self, copies=copies)

    def by_task(self) -> Iterator[tuple[TaskKey, CopyReport]]:
        """Yield for each copy the part of the report that decides which copy answers."""
        for status in self.copies:
            # Releases that give no data do not know the id either. A copy that was not opened has none.
            gives = bool(status.folder_id) or not status.state.is_caught_up
            yield (
                status.task,
                CopyReport(
                    self.copy,
                    self.generation,
                    status.state,
                    status.leaving,
                    status.position,
                    LogPoint(status.replied, status.epoch),
                    status.end,
                    self.announced_s,
                    status.filled,
                    status.topic_id,
                    status.checkpoint,
                    gives,
                    status.replaced,
                ),
            )


class _Version(msgspec.Struct):
    version: int


class _Lines(msgspec.Struct):
    """A report's copies before they are decoded."""

    copies: list[msgspec.Raw]


_encode = msgspec.json.Encoder().encode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode = msgspec.json.Decoder(UnitReport).decode
_decode_lines = msgspec.json.Decoder(_Lines).decode
_decode_line = msgspec.json.Decoder(CopyStatus).decode


def unit_key(node: str, unit: int) -> bytes:
    """Return the key of a unit's reports."""
    return f"{node}/{unit}".encode()


def encode_report(report: UnitReport) -> bytes:
    """Return the record of a report."""
    return _encode({"version": VERSION, **msgspec.to_builtins(report)})


def decode_report(record: bytes) -> UnitReport | None:
    """Return the report that a record holds; None for one left over of version 1, which says nothing any more.

    A copy whose part cannot be read, as it has a word that this release does not know, is left out.
    Raises ReportError.
    """
    try:
        version = _decode_version(record).version
        if version == VERSION:
            try:
                return _decode(record)
            except msgspec.ValidationError:
                return _decode(_without_unreadable(record))
    except msgspec.MsgspecError as error:
        raise ReportError(f"a report that cannot be read: {error}") from None
    if version == _LEFT_OVER_VERSION:
        return None
    raise ReportError(f"a report of version {version}; this release reads {VERSION}")


def _without_unreadable(record: bytes) -> bytes:
    """Return the record of a report without the copies that cannot be read."""
    readable = [line for line in _decode_lines(record).copies if _is_readable(line)]
    return _encode({**msgspec.json.decode(record), "copies": readable})


def _is_readable(line: msgspec.Raw) -> bool:
    try:
        _decode_line(line)
    except msgspec.ValidationError:
        return False
    return True
