"""`railgun run` end to end: random streams through files of every format, each value equal to the oracle's."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from railgun.catalog.definitions import load_definitions
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.cli.main import main
from railgun.language.types import Kind
from tests.counts import seeds
from tests.oracle.compare import same_value
from tests.oracle.steps import Reply, Score
from tests.oracle.types import Row, Type
from tests.oracle.values import read_value, to_decimal
from tests.strategies.case import STREAM, oracle
from tests.strategies.generate import Profile
from tests.strategies.seeded import case

Event = Mapping[str, Any]

EVENTS_ONLY = Profile(control_percent=0, derives=True)
INPUTS = (".csv", ".ndjson", ".parquet", ".avro", ".arrow")
OUTPUTS = (".ndjson", ".parquet", ".arrow")


@pytest.mark.parametrize("seed", seeds(range(6), range(15)))
def test_files_give_what_the_oracle_gives(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = case(seed, 150, EVENTS_ONLY)
    events = [step.event for step in drawn.steps if isinstance(step, Score)]
    model = oracle(drawn)
    expected = [model.score(event) for event in events]
    Path("d.toml").write_text(drawn.definitions, encoding="utf-8")
    fields, cut = model.stream.fields, len(events) // 3
    first, second = INPUTS[seed % len(INPUTS)], INPUTS[(seed + 1 + seed // 5) % len(INPUTS)]
    _write(Path(f"a{first}"), events[:cut], fields)
    _write(Path(f"b{second}"), events[cut:], fields)
    out = Path(f"out{OUTPUTS[seed % len(OUTPUTS)]}")
    assert main(["run", "d.toml", f"a{first}", f"b{second}", "--out", str(out)]) == 0
    rows = _read(out, load_definitions("d.toml"))
    stream = load_definitions("d.toml").streams[STREAM]
    assert len(rows) == len(events)
    for number, (row, event, reply) in enumerate(zip(rows, events, expected)):
        fields = model.stream.row(model.read(event, "made").fields)
        assert list(_complaints(row, fields, reply, stream, number)) == [], f"seed {seed}, row {number}"


def _complaints(
    row: dict[str, Any], fields: Row, reply: Reply, stream: StreamDefinition, number: int
) -> Iterator[str]:
    """What is wrong in a row. fields: of its event."""
    wanted: dict[str, Any] = {(stream.id or "id"): str(number) if stream.id is None else reply["id"]}
    wanted |= reply["metrics"]
    for partitioner in stream.partitioners:
        name = "all" if partitioner == "*" else partitioner
        is_sent = partitioner == "*" or fields.get(partitioner) is not None
        wanted[f"late_{name}"] = reply.get("late", {}).get(partitioner)
        wanted[f"duplicate_{name}"] = partitioner in reply.get("duplicate", ()) if is_sent else None
    # The oracle does not say in which order derived metrics stand: `tests/catalog/test_derivations.py` does.
    if sorted(row) != sorted(wanted):
        yield f"columns {list(row)}, expected {list(wanted)}"
    for name, value in wanted.items():
        if not same_value(value, row.get(name)):
            yield f"{name}: expected {value!r}, got {row.get(name)!r}"


# --- the files ------------------------------------------------------------------------------------


def _write(path: Path, events: Sequence[Event], fields: Mapping[str, Type]) -> None:
    if path.suffix == ".csv":
        rows = [",".join(_csv(event.get(name)) for name in fields) for event in events]
        path.write_text("\n".join([",".join(fields), *rows]) + "\n", encoding="utf-8", newline="")
    elif path.suffix == ".ndjson":
        path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    elif path.suffix == ".avro":
        any_type = ["null", "boolean", "long", "double", "string"]
        schema = {
            "type": "record",
            "name": "E",
            "fields": [{"name": name, "type": any_type} for name in fields],
        }
        with path.open("wb") as file:
            fastavro.writer(file, schema, [{name: event.get(name) for name in fields} for event in events])
    else:
        table = pa.table({name: _arrow(events, name, declared) for name, declared in fields.items()})
        if path.suffix == ".parquet":
            pq.write_table(table, path, row_group_size=20)
        else:
            with ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=20)


def _csv(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return json.dumps(value)


def _arrow(events: Sequence[Event], name: str, declared: Type) -> pa.Array:
    values: list[Any] = [read_value(event.get(name), declared, name) for event in events]
    if declared.kind == "decimal":
        exact = [to_decimal(each, declared.scale) if isinstance(each, Fraction) else None for each in values]
        return pa.array(exact, pa.decimal128(declared.precision, declared.scale))
    types = {"string": pa.string(), "long": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
    return pa.array(values, types.get(declared.kind, pa.timestamp("ms")))


def _read(path: Path, definitions: Definitions) -> list[dict[str, Any]]:
    """The rows of results as JSON has them."""
    if path.suffix == ".ndjson":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    table = pq.read_table(path) if path.suffix == ".parquet" else ipc.open_file(path).read_all()
    integers = {
        metric.name for metric in definitions.metrics if metric.resolved.result_type.kind is Kind.INTEGER128
    }
    return [
        {name: _plain(value, name in integers) for name, value in row.items()} for row in table.to_pylist()
    ]


def _plain(value: Any, is_integer: bool) -> Any:
    if isinstance(value, Decimal):
        return int(value) if is_integer else f"{value:f}"
    return value
