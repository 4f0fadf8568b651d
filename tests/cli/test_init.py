"""`railgun init` of files: what it writes is read by the engine, which scores the same file; or one clear sentence."""

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from railgun.cli.main import main
from railgun.demo.flights import read_flights
from railgun.demo.payments import payments
from tests.draft.drafts import ndjson, orders, read, stream_of, types_of, uncommented

Events = Sequence[Mapping[str, Any]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made_of(sample: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The draft of a file, which then scores all of that file."""
    assert main(["init", sample, "--output", "definitions.toml"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    words = [line.split() for line in said.err.splitlines() if line.startswith("  railgun ")]
    assert [line[1] for line in words] == ["run", "serve"]
    run = [*words[0][1:], "--json"]
    run[run.index("--out") + 1] = "scores.ndjson"
    assert main(run) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["refused"] == 0
    text = Path("definitions.toml").read_text(encoding="utf-8")
    read(uncommented(text))
    scores = [json.loads(line) for line in Path("scores.ndjson").read_text().splitlines()]
    assert len(scores) == summary["events"]
    first = read(text).metrics[0].name
    assert scores[0][first] == 1
    return text


def error_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command says before it ends."""
    assert main(["init", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "defect" not in said.err
    return said.err


def csv_file(name: str, events: Events) -> str:
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(events[0]))
        writer.writeheader()
        writer.writerows(events)
    return name


def parquet_file(name: str, events: Events) -> str:
    pq.write_table(pa.Table.from_pylist(list(events)), name)
    return name


def avro_file(name: str, events: Events) -> str:
    types = {str: "string", int: "long", float: "double", bool: "boolean"}
    fields = [{"name": key, "type": types[type(value)]} for key, value in events[0].items()]
    with Path(name).open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "E", "fields": fields}, events)
    return name


def arrow_file(name: str, events: Events) -> str:
    table = pa.Table.from_pylist(list(events))
    with pa.OSFile(name, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return name


def ndjson_file(name: str, events: Events) -> str:
    return str(ndjson(Path(name), events))


def test_flights(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flights = [asdict(flight) for flight in read_flights()[:12_000]]
    text = made_of(parquet_file("flights.parquet", flights), capsys)
    stream = stream_of(text)
    assert (stream.name, stream.time) == ("flights", "scheduled")
    assert stream.partitioners == ("plane",)
    assert "fixed once the stream is created; also possible: dest, carrier, origin" in text
    assert "from 10,000 events of flights.parquet" in text


def test_payments_as_csv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = payments(seed=2, cards=100, days=35).events[:3_000]
    text = made_of(csv_file("payments.csv", events), capsys)
    stream = stream_of(text)
    assert (stream.time, stream.id, stream.partitioners) == ("ts", "tx_id", ("card",))
    assert types_of(text)["amount"] == "double"
    assert types_of(text)["declined"] == "boolean"
    assert [metric.name for metric in read(text).metrics] == [
        "card_payments_10m",
        "card_amount_1d",
        "card_usual_amount",
    ]


def test_nested_orders(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = made_of(ndjson_file("orders.ndjson", orders()), capsys)
    assert stream_of(text).id == "id"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("e.csv", csv_file),
        ("e.ndjson", ndjson_file),
        ("e.parquet", parquet_file),
        ("e.avro", avro_file),
        ("e.arrow", arrow_file),
    ],
)
def test_formats_give_one_draft(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, write: Callable[[str, Events], str]
) -> None:
    events = [
        {"id": f"t{n}", "time": 1_700_000_000 + n, "card": f"c{n % 5}", "amount": n + 0.5, "ok": n % 2 == 0}
        for n in range(50)
    ]
    text = made_of(write(name, events), capsys)
    start = text.index("[streams.e]")
    assert text[start:] == EXPECTED


EXPECTED = """\
[streams.e]
time = "time"  # whole s since 1970; in all
id = "id"  # different in all 50 events; an event whose id has come before does not count
partitioners = ["card"]  # 5 different in 50 events; metrics group by it; fixed once the stream is created
lateness = "5s"  # no event came after a later one

[streams.e.fields]
id = "string"  # text; in all; 50 different
time = { type = "timestamp", unit = "s" }  # whole s since 1970; in all
card = "string"  # text; in all; 5 different
amount = "double"  # numbers; in all
ok = "boolean"  # true or false; in all

[[metrics]]
sql = "SELECT count(*) AS card_e_10m FROM e GROUP BY card OVER SLIDING 10 MINUTES"
[[metrics]]
sql = "SELECT sum(amount) AS card_amount_1d FROM e GROUP BY card OVER SLIDING 1 DAY"
[[metrics]]
sql = "SELECT avg(amount) AS card_usual_amount FROM e GROUP BY card OVER SLIDING 30 DAYS EXCLUDE CURRENT"

# More of the library (docs/metric-library.md); take the # away from what is wanted:
# [[metrics]]
# sql = "SELECT max(amount) AS card_most_amount FROM e GROUP BY card OVER SLIDING 30 DAYS EXCLUDE CURRENT"
# [[metrics]]
# sql = "DERIVE amount / card_usual_amount AS card_times_usual_amount FROM e"
# [[metrics]]
# sql = "SELECT last(time) AS card_before FROM e GROUP BY card OVER INFINITE EXCLUDE CURRENT"
# [[metrics]]
# sql = "DERIVE (time - card_before) / 1000 AS card_idle_s FROM e"
"""


def test_parquet_that_pandas_wrote(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = pa.array([1_700_000_000_000_000_001 + n for n in range(9)], pa.timestamp("ns"))
    card = pa.array(["c1", "c2", "c1"] * 3).dictionary_encode()
    nested = pa.StructArray.from_arrays([times, pa.array([1.5] * 9)], ["seen", "value"])
    table = pa.table({"ts": times, "card": card, "nested": nested, "amount": [1.0, float("nan")] + [2.0] * 7})
    pq.write_table(table, "e.parquet")
    text = made_of("e.parquet", capsys)
    assert types_of(text) == {
        "ts": "timestamp",
        "card": "string",
        "nested.seen": "timestamp",
        "nested.value": "double",
    }
    assert "# amount: of mixed kinds: a number with a point in 88.9 % and no finite number in 11.1 %" in text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "4111111111111111,12.50,2024-01-01\n4111111111111112,1.00,2024-01-01\n",
            "its first line seems to be an event",
        ),
        ("a;b;c\n1;2;3\n", "its columns are separated by ';', not by commas; convert it"),
        ("", "the file is empty"),
        ("a,b\n", "it has no events"),
        ("a,a,\n1,2,3\n", "no column has a name of its own; rename them"),
        ("a,b\n1\n2\n", "none of its 2 rows is an event"),
    ],
)
def test_a_csv_with_a_bad_header_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str, sentence: str
) -> None:
    Path("e.csv").write_text(content)
    said = error_of(["e.csv"], capsys)
    assert said.startswith("railgun init: e.csv: ")
    assert sentence in said
    assert "4111" not in said


def test_columns_of_one_name_are_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.csv").write_text("card,x,x,,größe (cm)\n" + "".join(f"c{n % 2},1,2,{n},{n}\n" for n in range(9)))
    text = made_of("e.csv", capsys)
    assert "without a name of their own cannot be read, and are left out: '', x" in text
    assert types_of(text) == {"card": "string", "['größe (cm)']": "double"}


def test_rows_that_lack_columns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.csv").write_text(
        "a,b,c\n" + "x,1,2\n" * 5 + "x,1\n" * 3 + "x\n" + "".join(f"x{',1' * n}\n" for n in range(3, 8))
    )
    assert main(["init", "e.csv"]) == 0
    text = capsys.readouterr().out
    assert (
        "# 9 records beside them could not be read. 3: it has 2 values, the header has 3; 1: it has 1 values"
        in text
    )
    assert "; 1: it has 6 values, the header has 3; 2: for other reasons\n" in text


def test_rows_that_are_no_events(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.ndjson").write_text('{"card": "c1", "ts": 1700000000000}\n[1]\nno JSON\n{"card": "c1"}\n')
    assert main(["init", "e.ndjson"]) == 0
    said = capsys.readouterr()
    assert "# 2 records beside them could not be read. 2: no JSON object" in said.out
    assert "--skip-bad" in said.err
    Path("definitions.toml").write_text(said.out)
    words = ["run", "definitions.toml", "e.ndjson", "--out", "s.csv", "--skip-bad", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["refused"] == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name a file of events, or a topic with --topic; one of them"),
        (["e.csv", "--topic", "t"], "one of them"),
        (["none.csv"], "No such file or directory"),
        (["e.txt"], "events are read from files ending in"),
        (["e.csv", "--stream", "a b"], "'a b' cannot name a stream"),
        (["e.csv", "--output", "e.csv"], "e.csv: it is there already, and is not overwritten"),
        (
            ["e.csv", "--output", "."],
            ".: it is a folder; name a file with --output, such as definitions.toml",
        ),
        (["damaged.avro"], "write or copy it again"),
        (["pictures.ndjson"], "not UTF-8"),
        (["empty.ndjson"], "it has no events"),
        (["lists.ndjson"], "none of its 2 rows is an event"),
    ],
)
def test_wrong_use(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str) -> None:
    Path("e.csv").write_text("a\nx\n")
    Path("damaged.avro").write_bytes(b"Obj\x01\x02")
    Path("pictures.ndjson").write_bytes(b"\x89PNG\0\0")
    Path("empty.ndjson").write_text("\n")
    Path("lists.ndjson").write_text("1\n2\n")
    assert sentence in error_of(words, capsys)
    assert Path("e.csv").read_text() == "a\nx\n"


def test_the_name_of_the_stream(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.csv").write_text("a\nx\n")
    assert main(["init", "e.csv", "--stream", "mine"]) == 0
    said = capsys.readouterr()
    assert stream_of(said.out).name == "mine"
    assert re.search(r"railgun run definitions\.toml e\.csv", said.err)
