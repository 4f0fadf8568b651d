"""The commit record of a checkpoint: everything of a task that is neither a stored item nor a segment."""

from typing import Any

import msgspec

from railgun.task.errors import CheckpointVersionError

VERSION = 1


class TaskMeta(msgspec.Struct, array_like=True):
    """position: the log offset of the next record to process; all before it are in the checkpoint.

    clock_ms, floor_ms, retained_ms: T, F and R there; least_ms: the least time ever accepted.  journal: pages of
    accepted bits (`Journal.to_json`).  stream: its definition and schemas by version, as JSON values; None before the
    first `stream` record.  metrics: `TaskMetrics.to_json`.  groups: group numbers by their fields, joined by
    commas; next_group: the next one to give.  inputs: `InputMemory.to_json`.  history: the id of what was put before
    its log, empty where nothing was.
    cells: the cells of each group's rows, [name, offset, words].  pool: `PagePool.meta`.
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


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TaskMeta).decode


def encode_meta(meta: TaskMeta) -> bytes:
    """The record's bytes."""
    return _encode(meta)


def decode_meta(body: bytes, place: str) -> TaskMeta:
    """The record that `encode_meta` wrote. Raises CheckpointVersionError, naming the place, for another version's."""
    try:
        meta = _decode(body)
    except msgspec.MsgspecError as error:
        raise CheckpointVersionError(place, f"its checkpoint cannot be read ({error})") from error
    if meta.version != VERSION:
        raise CheckpointVersionError(
            place, f"its checkpoint has version {meta.version}, this program reads {VERSION}"
        )
    return meta
