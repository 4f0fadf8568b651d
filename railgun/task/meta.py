"""The commit record of a checkpoint. It holds everything of a task that is not in the state store or in segments.

`checkpoints.py` writes it, `recovery.py` reads it. A *place* here is the number of a change in the catalogue.
"""

from typing import Any, NamedTuple

import msgspec

from railgun.task.errors import CheckpointVersionError

VERSION = 2
_WITHOUT_GAP = 1


class Crossing(NamedTuple):
    """The last gap of its log that a task has crossed: records that were lost, and an operator accepted that.

    gap_ms: no event in the gap, nor in gaps before it, is later.
    offset: the first record behind the gap.
    position, leader_epoch: the point of the log where the state ended that crossed the gap.
    """

    gap_ms: int
    offset: int
    position: int
    leader_epoch: int


class TaskMeta(msgspec.Struct, array_like=True):
    """The content of a commit record.

    version: 2 if the task has crossed a gap, else 1. A release without gaps refuses 2: it would answer without the
        marks of partial results.
    position: the log offset of the next record to process. All records before it are in the checkpoint.
    clock_ms, floor_ms, retained_ms: the clock T, the lateness floor F and the retention bound R at that position.
    least_ms: the least time ever accepted.
    chunks: how many chunks the reservoir had sealed since the beginning; these were durable before the commit.
    journal: pages of accepted bits (`Journal.to_json`).
    stream: the stream's definition as a JSON value; None before the first `stream` record.
    schemas: the stream's definitions by schema version, as JSON values.
    metrics: `TaskMetrics.to_json`.
    groups: group numbers by their fields, joined by commas.
    next_group: the next group number to give.
    cells: the cells of each group's rows, as [name, offset, words].
    pool: `PagePool.meta`.
    inputs: `InputMemory.to_json`.
    history: the id of the history before the task's log; empty if there is none.
    leader_epoch: the epoch of the record before the position, as its broker gave it; -1 if it is not known.
    saved_rows: numbers of the reservoir's files of open rows. None in the checkpoint of an earlier release, whose open
        rows are read again from the log.
    topic_id: the id of the topic of the task's log; empty if that has none, or in the checkpoint of an earlier release.
    gap: the last gap of the log that the task has crossed; None: none.
    begun: the id of the history that was begun last, by a `begin_deepening` record; empty if none was since that gap.
    """

    version: int
    position: int
    clock_ms: int
    floor_ms: int
    retained_ms: int
    least_ms: int
    chunks: int
    journal: list[dict[str, Any]]
    stream: dict[str, Any] | None
    schemas: dict[str, dict[str, Any]]
    metrics: dict[str, Any]
    groups: dict[str, int]
    next_group: int
    cells: dict[str, list[tuple[str, int, int]]]
    pool: bytes
    inputs: dict[str, Any] = {}
    history: str = ""
    leader_epoch: int = -1
    saved_rows: list[int] | None = None
    topic_id: str = ""
    gap: Crossing | None = None
    begun: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TaskMeta).decode


def version_for(gap: Crossing | None) -> int:
    """Return the version of the commit record of a task that has crossed a gap, or none."""
    return _WITHOUT_GAP if gap is None else VERSION


def encode_meta(meta: TaskMeta) -> bytes:
    """Return the record's bytes."""
    return _encode(meta)


def decode_meta(body: bytes, place: str) -> TaskMeta:
    """Decode what `encode_meta` returned. Raises CheckpointVersionError for another version.

    place: the folder or task that the error names.
    """
    try:
        meta = _decode(body)
    except msgspec.MsgspecError as error:
        raise CheckpointVersionError(place, f"its checkpoint cannot be read ({error})") from error
    if not _WITHOUT_GAP <= meta.version <= VERSION:
        raise CheckpointVersionError(
            place, f"its checkpoint has version {meta.version}, this program reads up to {VERSION}"
        )
    return meta
