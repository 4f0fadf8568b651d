"""A control record that cannot be understood stops the task, and says where."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from railgun.catalog.changes import AddMetric, PutStream, change_to_json
from railgun.engine.errors import translated
from railgun.task.errors import MalformedControlError
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.task.small_log import SmallLog, stream_text

LOG = SmallLog(stream_text())
PUT = change_to_json(PutStream(9, LOG.stream, 2))
(METRIC,) = metrics_from_sql("SELECT sum(1) AS x FROM s GROUP BY k OVER INFINITE", {"s": LOG.stream})
ADD = change_to_json(AddMetric(9, METRIC))


def without(body: dict[str, Any], key: str) -> bytes:
    return encode_control({name: value for name, value in body.items() if name != key})


def having(body: dict[str, Any], **other: object) -> bytes:
    return encode_control({**body, **other})


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (b"\x02", "cannot be read"),
        (b"\x02\xff\xff", "cannot be read"),
        (b"\x02" + msgspec.msgpack.encode([1, 2]), "cannot be read"),
        (b"\x02" + msgspec.msgpack.encode({"place": 9}), "without a kind"),
        (b"\x02" + b"\x81\xa1a" * 2_000, "cannot be read"),
        (having(PUT, kind="enlarge"), "unknown kind of change 'enlarge'"),
        (without(PUT, "place"), "missing"),
        (without(PUT, "stream"), "missing"),
        (having(PUT, place="9"), "no place"),
        (having(PUT, place=-1), "no place"),
        (having(PUT, schema_version=None), "no place or version"),
        (having(PUT, stream=[1]), "a table with"),
        (having(PUT, stream=None), "a table with"),
        (having(PUT, stream={**PUT["stream"], "lateness": "soon"}), "lateness"),
        (having(PUT, stream={**PUT["stream"], "fields": 7}), "fields"),
        *[
            (having(PUT, stream={**PUT["stream"], "computed": computed}), said)
            for computed, said in (
                (7, "computed: a table of computed fields"),
                ({"c": 7}, "computed.c: a table with"),
                ({"c": {"type": "string"}}, "computed.c.as"),
                ({"c": {"type": "string", "as": "none"}}, "no field 'none'"),
                ({"c": {"type": "string", "as": "c"}}, "in a circle"),
                ({"c": {"type": "string", "as": "k", "when": 1}}, "computed.c.when: unknown key"),
                ({"c": {"type": "string", "as": "k", "zones": [1]}}, "a table of time zones"),
                ({"c": {"type": "string", "as": "k", "zones": {"UTC": {}}}}, "no table of the time zone"),
            )
        ],
        (having(ADD, stream=["s"]), "stream"),
        (having(ADD, stream="other"), "no stream 'other'"),
        (having(ADD, sql="SELECT"), "sql"),
        (having(ADD, sql="SELECT sum(k) AS x FROM s GROUP BY k OVER INFINITE"), "sql"),
    ],
)
def test_it_stops_the_task_at_its_offset(tmp_path: Path, record: bytes, said: str) -> None:
    log = SmallLog(stream_text())
    task = log.open(tmp_path, TaskSettings())
    log.event("e1", 1_000_000)
    log.feed(task)
    offset = task.position
    log.records.append(record)
    try:
        with pytest.raises(MalformedControlError, match=rf"s/k/0 offset {offset}: .*{said}") as caught:
            log.feed(task)
        assert task.position == offset
        assert translated(caught.value) is not None
    finally:
        task.close()
