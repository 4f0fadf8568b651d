"""The reports of units in the topic of positions. Version 1 is read too. See FORMAT.md."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyReport, CopyState, LogPoint

VERSION: Final = 2
IDLE_S: Final = 5.0
"""Version 1 reports each task at least this often."""

_V1_STATES: Final = {
    "running": CopyState.ANSWERING,
    "recovering": CopyState.BEHIND,
    "stopped": CopyState.CLOSED,
}


class ReportError(ValueError):
    """A record of the topic that is no report."""


class OfTask(msgspec.Struct, kw_only=True):
    """What is said of a task's copy or data names the task by these keys."""

    stream: str
    created: int
    partitioner: str
    partition: int

    @property
    def task(self) -> TaskKey:
        return TaskKey(self.stream, self.created, self.partitioner, self.partition)


class CopyStatus(OfTask, kw_only=True, omit_defaults=True):
    """What a report says of one copy. The keys are those of FORMAT.md."""

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


class UnitReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One record: a unit, and all copies that it has.

    number: counts the reports of one run of the unit.
    """

    version: int = VERSION
    node: str
    unit: int
    generation: int
    number: int = 0
    interval_ms: int
    copies: list[CopyStatus]

    @property
    def copy(self) -> CopyName:
        """The name of the unit's copies."""
        return CopyName(self.node, self.unit)

    @property
    def announced_s(self) -> float:
        """The unit reports again within this time; 0 if it does not say, as in version 1."""
        return self.interval_ms / 1000 if self.version > 1 else 0.0

    def ended(self) -> "UnitReport | None":
        """Return what is reported in the unit's name once its process has ended. None where that says nothing new, and
        of version 1, which is only read.

        Copies that could answer are closed. One that was behind still is: it is made further when the unit is back.
        """
        copies = [
            msgspec.structs.replace(each, state=CopyState.CLOSED, leaving=True)
            if each.state.is_caught_up
            else each
            for each in self.copies
        ]
        if self.version != VERSION or copies == self.copies:
            return None
        return msgspec.structs.replace(self, copies=copies)

    def by_task(self) -> Iterator[tuple[TaskKey, CopyReport]]:
        """Yield what decides who answers, for each copy."""
        for status in self.copies:
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
                    self.interval_ms / 1000,
                    status.filled,
                ),
            )


class _Version1(msgspec.Struct):
    node: str
    unit: int
    generation: int
    stream: str
    created: int
    partitioner: str
    partition: int
    state: str
    processed: int
    replied: int
    checkpointed: int
    end: int
    warming: list[str]
    filled: dict[str, float] = {}
    history: str = ""
    following: dict[str, Any] | None = None
    unreadable: int = 0


class _Version(msgspec.Struct):
    version: int


_encode = msgspec.json.Encoder().encode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_1 = msgspec.json.Decoder(_Version1).decode
_decode_2 = msgspec.json.Decoder(UnitReport).decode


def unit_key(node: str, unit: int) -> bytes:
    """Return the key of a unit's reports."""
    return f"{node}/{unit}".encode()


def encode_report(report: UnitReport) -> bytes:
    """Return the record of a report."""
    # The encoder would leave the version out, as a default.
    return _encode({"version": VERSION, **msgspec.to_builtins(report)})


def decode_report(record: bytes) -> UnitReport:
    """Return the report that a record holds. Raises ReportError."""
    try:
        version = _decode_version(record).version
        if version == 1:
            return _from_1(_decode_1(record))
        if version == VERSION:
            return _decode_2(record)
    except msgspec.MsgspecError as error:
        raise ReportError(f"a report that cannot be read: {error}") from None
    raise ReportError(f"a report of version {version}; this release reads 1 and {VERSION}")


def _from_1(old: _Version1) -> UnitReport:
    """Version 1 has a record for each task. A failed task said its position where `replied` stands: it counts for
    nothing.
    """
    state = _V1_STATES.get(old.state, CopyState.FAILED)
    status = CopyStatus(
        stream=old.stream,
        created=old.created,
        partitioner=old.partitioner,
        partition=old.partition,
        state=state,
        failure="" if state is not CopyState.FAILED else old.state.removeprefix("failed: "),
        position=old.processed,
        replied=0 if state is CopyState.FAILED else old.replied,
        checkpoint=old.checkpointed,
        end=old.end,
        warming=old.warming,
        filled=old.filled,
        history=old.history,
        following=old.following,
        unreadable=old.unreadable,
    )
    return UnitReport(
        version=1,
        node=old.node,
        unit=old.unit,
        generation=old.generation,
        interval_ms=round(IDLE_S * 1000),
        copies=[status],
    )
