"""The messages that the child processes of a node send one another. Their node's supervisor relays them (FORMAT.md).

A message that cannot be delivered at once is dropped. So whoever needs an answer asks again, and a process that gets an
order a second time continues with it.
"""

from typing import Final

import msgspec

LINE_BYTES_MAX: Final = 1 << 16
"""The longest line that is relayed. A longer one is dropped."""

LEADER: Final = "leader"
"""The leader's process, as addressee and as sender."""
TRANSFER: Final = "transfer"
"""The transfer process, as addressee and as sender."""


def unit_address(index: int) -> str:
    """Return the name of a unit, as addressee and as sender."""
    return f"unit {index}"


class Serving(msgspec.Struct, frozen=True, tag_field="kind", tag="serving"):
    """The transfer process tells the leader's process where it serves snapshots, and repeats this now and then.

    address: host:port; empty if nothing is served.
    key: the key of this start of the process, in hexadecimal digits.
    reason: why nothing is served.
    """

    address: str = ""
    key: str = ""
    reason: str = ""


class MakeSnapshot(msgspec.Struct, frozen=True, tag_field="kind", tag="make_snapshot"):
    """The transfer process orders a snapshot from a unit. It asks again until SnapshotMade comes.

    task: stream.created/partitioner/partition.
    name: the name of the folder in `snapshots/`, in hexadecimal digits.
    """

    task: str
    name: str


class SnapshotMade(msgspec.Struct, frozen=True, tag_field="kind", tag="snapshot_made"):
    """A unit tells the transfer process that an order has ended. error: one line; empty if the snapshot is there."""

    name: str
    error: str = ""


class Fetch(msgspec.Struct, frozen=True, tag_field="kind", tag="fetch"):
    """A unit orders the data of a task. It asks again if it has heard nothing of it for a while.

    task: stream.created/partitioner/partition.
    donors: (node, unit) of the copies that may give the data, in order of preference.
    topic_id: the id of the task's log; empty if it is not known.
    log_start: data at an earlier offset than this is of no use.
    formats: the greatest versions of the formats in a task's folder that the unit reads, by name.
    folder: the absolute path of the task's folder. The data comes into the folder beside it.
    """

    task: str
    donors: list[tuple[str, int]]
    topic_id: str
    log_start: int
    formats: dict[str, int]
    folder: str


class StopFetch(msgspec.Struct, frozen=True, tag_field="kind", tag="stop_fetch"):
    """A unit takes back an order. The data that was fetched stays."""

    task: str


class Fetching(msgspec.Struct, frozen=True, tag_field="kind", tag="fetching"):
    """The transfer process tells a unit how far a fetch has come.

    donor: node/unit; empty while the fetch waits for its turn.
    fetched, total: bytes.  hashed: how many bytes were hashed, at the donor and here, before bytes move.
    """

    task: str
    donor: str = ""
    fetched: int = 0
    total: int = 0
    hashed: int = 0


class Fetched(msgspec.Struct, frozen=True, tag_field="kind", tag="fetched"):
    """The transfer process tells a unit that a fetch has ended.

    error: one line; empty if the data is there and verified.
    position: the offset of the next record.
    donor: node/unit.
    bytes: how many were moved.  linked: how many are in files that were there already.
    is_final: whether the order would end in the same way if it came again soon.
    """

    task: str
    error: str = ""
    position: int = 0
    donor: str = ""
    bytes: int = 0
    linked: int = 0
    is_final: bool = False


Message = Serving | MakeSnapshot | SnapshotMade | Fetch | StopFetch | Fetching | Fetched


class Received(msgspec.Struct, frozen=True, rename={"sender": "from"}):
    """A message as its addressee gets it. sender: LEADER, TRANSFER or that of a unit."""

    sender: str
    message: Message


class _Sent(msgspec.Struct):
    to: str
    message: msgspec.Raw
    version: int = 1


class _Passed(msgspec.Struct, rename={"sender": "from"}):
    sender: str
    message: msgspec.Raw


_encode = msgspec.json.Encoder().encode
_decode_sent = msgspec.json.Decoder(_Sent).decode
_decode_received = msgspec.json.Decoder(Received).decode


def sent(to: str, message: Message) -> bytes:
    """Return the line with which a process sends a message."""
    return _encode(_Sent(to, msgspec.Raw(_encode(message)))) + b"\n"


def passed_on(line: bytes, sender: str) -> tuple[str, bytes] | None:
    """Return the addressee of a line, and the line for it; None if the line is no message, or too long."""
    if len(line) > LINE_BYTES_MAX:
        return None
    try:
        found = _decode_sent(line)
    except msgspec.MsgspecError:
        return None
    return found.to, _encode(_Passed(sender, found.message)) + b"\n"


def received(line: bytes) -> Received | None:
    """Return the message in a line; None if there is none that this release knows."""
    try:
        return _decode_received(line)
    except msgspec.MsgspecError:
        return None
