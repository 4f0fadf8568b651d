"""Query records, which ask a task for values, and the refusal that a task may answer with. FORMAT.md has the bytes.

Front-ends write queries, and units write refusals.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

QUERY, REFUSAL = 0x05, 0x06


class QueryRecordError(ValueError):
    """The bytes are not a query record or a refusal. The message says why."""


class QueryRecord(NamedTuple):
    """A query: keys for which one task is asked for the values of its metrics.

    created: the place in the catalogue at which the stream was created.
    place: the task answers once it has applied the changes of the catalogue up to this place.
    after: the task answers once it has processed this offset.
    schema: the version of the schema of the records.
    timeout_ms: how long the front-end waits for the answer.
    front_end, incarnation, number: the front-end that asks, its incarnation, and the number of the query. A query that
        is sent again has the same number.
    records: an event record for each key, with its fields.
    """

    created: int
    place: int
    after: int
    schema: int
    timeout_ms: int
    front_end: int
    incarnation: int
    number: int
    records: Sequence[bytes]


class Refusal(NamedTuple):
    """The reason why a task does not answer a query. incarnation, number: those of the query."""

    incarnation: int
    number: int
    detail: str


_encode = msgspec.msgpack.Encoder().encode
_decode_query = msgspec.msgpack.Decoder(tuple[int, int, int, int, int, int, int, int, list[bytes]]).decode
_decode_refusal = msgspec.msgpack.Decoder(tuple[int, int, str]).decode


def encode_query(query: QueryRecord) -> bytes:
    """Return a query as a record."""
    return bytes((QUERY,)) + _encode(query)


def decode_query(record: bytes) -> QueryRecord:
    """Decode a query record. Raises QueryRecordError."""
    if record[:1] != bytes((QUERY,)):
        raise QueryRecordError(f"no query: it begins with {record[:1].hex() or 'nothing'}")
    try:
        return QueryRecord(*_decode_query(memoryview(record)[1:]))
    except msgspec.MsgspecError as error:
        raise QueryRecordError(f"a query that cannot be read: {error}") from error


def encode_refusal(refusal: Refusal) -> bytes:
    """Return a refusal as a record."""
    return bytes((REFUSAL,)) + _encode(refusal)


def decode_refusal(record: bytes) -> Refusal | None:
    """Decode a refusal; None if the record is of another kind. Raises QueryRecordError."""
    if record[:1] != bytes((REFUSAL,)):
        return None
    try:
        return Refusal(*_decode_refusal(memoryview(record)[1:]))
    except msgspec.MsgspecError as error:
        raise QueryRecordError(f"a refusal that cannot be read: {error}") from error
