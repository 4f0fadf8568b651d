"""Records, replies and blocks of the log as earlier releases wrote them; first bytes of later ones are told."""

import json
from typing import Any

import pytest

from railgun.messaging.block import check_block, open_blocks
from railgun.wire.control_records import ControlRecordError, decode_control, encode_control
from railgun.wire.decode import Decoder
from railgun.wire.encode import encode_event
from railgun.wire.msgpack import Status
from railgun.wire.records import Records
from railgun.wire.reply import Partial, ReplyRecordError, decode_reply
from tests.wire.make_golden import CONTROL, EVENTS, GOLDEN, OFFSETS, RESULTS, SHAPES, reply_record
from tests.wire.test_decode import FIRST, NAMES, SECOND, expected_row, row_of
from tests.wire.test_reply import source_of
from tests.wire.test_reply import values_of as results_in


@pytest.fixture(params=sorted(GOLDEN.iterdir()), ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest) -> dict[str, Any]:
    return json.loads(request.param.read_text(encoding="utf-8"))


def test_events_read_as_they_were_written(golden: dict[str, Any]) -> None:
    raw = [bytes.fromhex(each) for each in golden["events"]]
    decoded = Decoder([FIRST, SECOND], NAMES).decode(Records.of(raw))
    assert decoded.n == len(EVENTS)
    assert decoded.status.tolist()[: decoded.n] == [0] * decoded.n
    for row, (schema, event_id, time_ms, values, *head) in enumerate(EVENTS):
        items = [schema, event_id, time_ms, *head, *values]
        assert row_of(decoded, row) == expected_row(items)


def test_control_records_read_as_they_were_written(golden: dict[str, Any]) -> None:
    assert decode_control(bytes.fromhex(golden["control"])) == CONTROL


def test_replies_read_as_they_were_written(golden: dict[str, Any]) -> None:
    batch = decode_reply(bytes.fromhex(golden["reply"]))
    assert (batch.source, batch.generation, batch.place) == (source_of(SHAPES), 5, 6)
    assert batch.ids() == [event[1] for event in EVENTS[1:]]
    assert batch.offset.tolist() == OFFSETS[1:]
    assert batch.incarnation.tolist() == [-9, 1]
    assert batch.partials == [Partial(2, 77, 0, 2)]
    for metric in range(len(SHAPES)):
        assert results_in(batch, metric) == [row["values"][metric] for row in RESULTS[1:]]


def test_blocks_read_as_they_were_written(golden: dict[str, Any]) -> None:
    block = bytes.fromhex(golden["block"])
    assert check_block(block) == len(EVENTS) + 1
    found = [each.hex() for each in open_blocks([block], 0, 100, 1 << 20).to_list()]
    assert found == [*golden["events"], golden["control"]]


def test_what_is_written_now_is_the_newest_golden_version() -> None:
    newest = json.loads(max(GOLDEN.iterdir()).read_text(encoding="utf-8"))
    assert [encode_event(*event).hex() for event in EVENTS] == newest["events"]
    assert encode_control(CONTROL).hex() == newest["control"]
    assert reply_record().hex() == newest["reply"]


def test_first_bytes_of_later_versions_are_told(golden: dict[str, Any]) -> None:
    event, control, reply = (
        bytes.fromhex(each) for each in (golden["events"][0], golden["control"], golden["reply"])
    )
    decoded = Decoder([FIRST, SECOND], NAMES).decode(Records.of([b"\x41" + event[1:]]))
    assert decoded.status.tolist()[:1] == [Status.UNKNOWN_RECORD]
    with pytest.raises(ControlRecordError):
        decode_control(b"\x42" + control[1:])
    with pytest.raises(ReplyRecordError):
        decode_reply(b"\x43" + reply[1:])
    block = bytes.fromhex(golden["block"])
    assert check_block(b"\2" + block[1:]) == 0
