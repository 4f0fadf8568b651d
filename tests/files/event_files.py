"""The same events in every format, for tests of readers."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from railgun.catalog.model import FieldDefinition, StreamDefinition
from railgun.files.reading import EventFiles
from railgun.ingest.file_events import CheckedBlock, EventChecks
from railgun.language.types import BOOLEAN, DOUBLE, LONG, STRING, TIMESTAMP, decimal

SUFFIXES = (".parquet", ".csv", ".ndjson", ".jsonl", ".avro", ".arrow", ".feather")

STREAM = StreamDefinition(
    "payments",
    (
        FieldDefinition("id", STRING),
        FieldDefinition("ts", TIMESTAMP),
        FieldDefinition("count", LONG),
        FieldDefinition("amount", DOUBLE),
        FieldDefinition("fee", decimal(18, 4)),
        FieldDefinition("online", BOOLEAN),
        FieldDefinition("from", STRING),
    ),
    time="ts",
    id="id",
)
SCHEMA = STREAM.schema(1)
NAMES = [field.name for field in STREAM.fields]

Event = dict[str, Any]

EVENTS: list[Event] = [
    {
        "id": "plain",
        "ts": 1_700_000_000_123,
        "count": 1,
        "amount": 1.5,
        "fee": Decimal("12.3400"),
        "online": True,
        "from": "x",
    },
    {"id": "nulls", "ts": 0, "count": None, "amount": None, "fee": None, "online": None, "from": None},
    {
        "id": "extremes",
        "ts": 253_402_300_799_999,
        "count": 2**63 - 1,
        "amount": 1.7976931348623157e308,
        "fee": Decimal("99999999999999.9999"),
        "online": False,
        "from": "",
    },
    {
        "id": 'quotes " , and\nlines, ü 💳',
        "ts": 1,
        "count": -(2**63),
        "amount": 5e-324,
        "fee": Decimal("-0.0001"),
        "online": False,
        "from": "\\",
    },
]

_ARROW = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.timestamp("ms", "UTC")),
        ("count", pa.int64()),
        ("amount", pa.float64()),
        ("fee", pa.decimal128(18, 4)),
        ("online", pa.bool_()),
        ("from", pa.string()),
    ]
)
_AVRO = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "id", "type": ["null", "string"]},
        {"name": "ts", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "count", "type": ["null", "long"]},
        {"name": "amount", "type": ["null", "double"]},
        {
            "name": "fee",
            "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4}],
        },
        {"name": "online", "type": ["null", "boolean"]},
        {"name": "from", "type": ["null", "string"]},
    ],
}


def arrow_table(events: Sequence[Event]) -> pa.Table:
    """Events as Arrow has them."""
    return pa.Table.from_pylist(list(events), _ARROW)


def write_events(path: Path, events: Sequence[Event]) -> Path:
    """Write a file by its suffix, by other means than this project's own."""
    if path.suffix == ".parquet":
        pq.write_table(arrow_table(events), path, row_group_size=3)
    elif path.suffix in (".arrow", ".feather"):
        table = arrow_table(events)
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    elif path.suffix == ".csv":
        table = arrow_table(events)
        times = table["ts"].cast(pa.int64())
        pacsv.write_csv(table.set_column(1, "ts", times), path)
    elif path.suffix == ".avro":
        with path.open("wb") as file:
            fastavro.writer(file, _AVRO, [_for_avro(event) for event in events], codec="deflate")
    else:
        path.write_text("".join(json.dumps(_for_json(event)) + "\n" for event in events))
    return path


def read_back(paths: Sequence[Path], stream: StreamDefinition = STREAM) -> list[CheckedBlock]:
    """What the reader and the validator make of files."""
    schema = stream.schema(1)
    with EventFiles(paths, schema) as files:
        return list(EventChecks(stream, schema, 1 << 60).blocks(files))


def events_of(blocks: Sequence[CheckedBlock]) -> list[list[Any]]:
    """The accepted events' values: decimals unscaled, as the wire carries them."""
    found: list[list[Any]] = []
    for block in blocks:
        for row in range(len(block.events)):
            found.append([_value(column, row) for column in block.events.fields])
    return found


def wire_values(event: Event) -> list[Any]:
    """What `events_of` gives for an event."""
    fee = event["fee"]
    return [event[name] if name != "fee" else None if fee is None else int(fee.scaleb(4)) for name in NAMES]


def _value(column: Any, row: int) -> Any:
    if column.nulls is not None and column.nulls[row]:
        return None
    if column.heap is not None:
        return column.string(row)
    word = column.words[row]
    kind = column.type.kind.name
    if kind == "DOUBLE":
        return float(word.view("float64"))
    return bool(word) if kind == "BOOLEAN" else int(word.view("int64"))


def _for_json(event: Event) -> Event:
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in event.items()}


def _for_avro(event: Event) -> Event:
    seconds, ms = divmod(event["ts"], 1000)
    return {**event, "ts": datetime.fromtimestamp(seconds, UTC).replace(microsecond=1000 * ms)}
