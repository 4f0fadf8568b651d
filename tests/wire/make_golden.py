"""Writes the golden bytes of records in their present versions: run once per version, then leave them alone.

python -m tests.wire.make_golden
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from railgun.messaging.block import make_blocks
from railgun.wire.control_records import encode_control
from railgun.wire.decode import Decoder
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from railgun.wire.reply import BatchReplies, Partial, ReplyEncoder, ReplyFlag, Shape
from tests.wire.test_decode import FIRST, SECOND
from tests.wire.test_reply import results_of, source_of

GOLDEN = Path(__file__).parent / "golden"

EVENTS: list[tuple[Any, ...]] = [
    (1, "e1", 1_700_000_000_000, ["çard", -(2**63), 1.5, True, -99_99, 7], -1, 0, 0, None),
    (3, "", -5, [None, 2**63 - 1, -1e308, False, 10**9 - 1, None, "a\0note"], 3, -9, 2**62, (4, 5, 3)),
    (1, "e" * 300, 0, [], 3, 1, 2, None),
]
CONTROL: dict[str, Any] = {
    "kind": "warm",
    "stream": "s",
    "name": "né",
    "added": 7,
    "ratio": 0.5,
    "of": [None, True],
}
SHAPES = [Shape.WORD, Shape.WIDE, Shape.STRING]
RESULTS = [{"values": (1, 2**100, "één")}, {"values": (None, None, None)}, {"values": (2**64 - 1, 5, "")}]
REPLY_TO, OFFSETS = 3, [1_000, 1_001, 1_005]


def reply_record() -> bytes:
    """The reply to the events that front-end 3 waits for: the second and the third."""
    decoded = Decoder([FIRST, SECOND], []).decode(Records.of([encode_event(*each) for each in EVENTS]))
    flags = np.array([0, ReplyFlag.DUPLICATE, 0], np.uint8)
    replies = BatchReplies(
        decoded, flags, np.array(OFFSETS), *results_of(SHAPES, RESULTS), partials=[Partial(2, 77, 1, 3)],
        generation=5, place=6,
    )  # fmt: skip
    return dict(ReplyEncoder(source_of(SHAPES)).encode(replies))[REPLY_TO]


def main() -> None:
    """One file: what each record is, and its bytes in hexadecimal."""
    events = [encode_event(*each) for each in EVENTS]
    (_, block), *_ = make_blocks([Records.of([*events, encode_control(CONTROL)])])
    golden = {
        "events": [each.hex() for each in events],
        "control": encode_control(CONTROL).hex(),
        "reply": reply_record().hex(),
        "block": block.hex(),
    }
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / "v2.json").write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
