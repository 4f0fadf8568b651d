"""Validation against the engine: equal on logs with everything in them, and one planted cent is found."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from railgun.cli.main import main
from railgun.spark.errors import OptionError, ReplyFileError
from railgun.spark.validation.run_source import RunFiles
from railgun.spark.validation.translate import FIELD_PREFIX
from railgun.spark.validation.validate_run import ValidationError, check_files, validate_run
from tests.spark.runs import START_MS, definitions, events, run
from tests.strategies.case import STREAM
from tests.strategies.generate import Profile
from tests.strategies.seeded import case

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

CENTS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
amount = "double"
price = "decimal(9,2)"
[[metrics]]
sql = '''SELECT sum(amount) AS total, sum(price) AS exact_total, avg(price) AS mean, stddev(amount) AS spread
         FROM s WHERE amount < 50 GROUP BY card OVER SLIDING 30 SECONDS'''
"""


def payments(n: int) -> list[dict[str, object]]:
    return [
        {"id": f"e{i}", "ts": START_MS + i * 900, "card": f"c{i % 3}", "amount": i / 7, "price": f"{i}.33"}
        for i in range(n)
    ]


@pytest.mark.parametrize(("policy", "windows"), [("rewrite", (0, 1, 3, 6)), ("discard", (2, 4, 5))])
def test_everything_is_equal(
    spark: SparkSession, tmp_path: Path, policy: str, windows: tuple[int, ...]
) -> None:
    report = validate_run(spark, run(tmp_path, definitions(policy, windows), events(len(policy), 300)))
    assert report.mismatches == 0, report.as_text()
    assert report.events == 300
    assert not [check for check in report.checks if check.not_checked or not check.compared]
    beyond = {check.name for check in report.checks if check.beyond}
    assert not beyond, beyond


def test_of_the_fields_those_that_metrics_need_are_read(spark: SparkSession, tmp_path: Path) -> None:
    unused = CENTS.replace(
        'price = "decimal(9,2)"', 'price = "decimal(9,2)"\nnote = "string"\nflag = "boolean"'
    )
    files = run(tmp_path, unused, [row | {"note": "n", "flag": True} for row in payments(3)])
    rows = files.rows(spark, *files.defined())
    fields = [name for name in rows.columns if name.startswith(FIELD_PREFIX)]
    assert fields == ["f_card", "f_amount", "f_price"]
    assert [row["f_amount"] for row in rows.collect()] == [0, 1 / 7, 2 / 7]


def test_names_may_differ_in_their_case_alone(spark: SparkSession, tmp_path: Path) -> None:
    alike = CENTS.replace('card = "string"', 'card = "string"\nCard = "string"')
    alike = alike.replace("avg(price) AS mean", "avg(price) AS TOTAL").replace("BY card", "BY card, Card")
    files = run(tmp_path, alike, [row | {"Card": f"{n % 2}"} for n, row in enumerate(payments(20))])
    before = SparkSession.getActiveSession()
    report = validate_run(spark, files)
    assert not report.mismatches, report.as_text()
    assert {"total", "TOTAL"} <= {check.name for check in report.checks if check.compared}
    assert SparkSession.getActiveSession() is before


def test_a_run_whose_times_nobody_knows_is_refused(tmp_path: Path) -> None:
    timeless = CENTS.replace('time = "ts"\n', "")
    files = run(tmp_path, timeless, payments(3))
    with pytest.raises(ValidationError, match=r"^stream s has no time field"):
        check_files(files)


def test_a_planted_cent_is_found(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = run(tmp_path, CENTS, payments(90))
    words = ["validate", files.definitions, *files.events, "--out", files.out]
    assert main([*words, "--sample", "0.9"]) == 0
    assert "all equal" in capsys.readouterr().out
    table = pq.read_table(files.out)
    for name, row, cent in (("total", 41, 0.01), ("exact_total", 7, Decimal("0.01"))):
        values = table.column(name).to_pylist()
        values[row] += cent
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values, table.schema.field(name).type))
    late = table.column("duplicate_card").to_pylist()
    late[3] = True
    table = table.set_column(table.schema.get_field_index("duplicate_card"), "duplicate_card", pa.array(late))
    pq.write_table(table, files.out)
    assert main([*words, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    wrong = {each["name"]: each for each in report["metrics"] if each["mismatches"]}
    assert {name: each["mismatches"] for name, each in wrong.items()} == {
        "total": 1,
        "exact_total": 1,
        "duplicate_card": 1,
    }
    assert [(each["row"], each["id"]) for each in wrong["total"]["examples"]] == [(41, "e41")]
    assert wrong["total"]["difference"] == pytest.approx(0.01)
    [example] = wrong["duplicate_card"]["examples"]
    assert (example["row"], example["got"]) == (3, "true")
    [example] = wrong["exact_total"]["examples"]
    assert Decimal(example["got"]) - Decimal(example["expected"]) == Decimal("0.01")


def test_what_cannot_be_decided_is_not_said_to_be_equal(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    amounts = (1.0, 1.7e308, 1.7e308, 2.0)
    rows: list[dict[str, object]] = [
        {"id": f"e{i}", "ts": START_MS + i * 900, "card": "c", "amount": amount}
        for i, amount in enumerate(amounts)
    ]
    sums = CENTS[: CENTS.index("[[metrics]]")] + (
        "[[metrics]]\nsql = 'SELECT sum(amount) AS total FROM s GROUP BY card OVER INFINITE'"
    )
    files = run(tmp_path, sums, rows)
    words = ["validate", files.definitions, *files.events, "--out", files.out]
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["equal"], report["undecided"]) == (True, 2)
    assert main(words) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    said = f"4 events, {report['values']} values compared: {report['values'] - 2} equal, 2 undecided"
    assert last == said


def test_a_file_that_does_not_belong_is_told(spark: SparkSession, tmp_path: Path) -> None:
    files = run(tmp_path, CENTS, payments(20))
    table = pq.read_table(files.out)
    pq.write_table(table.slice(0, 19), files.out)
    with pytest.raises(Exception, match="ends after 19 replies"):
        validate_run(spark, files)
    pq.write_table(table.drop_columns(["spread"]), files.out)
    with pytest.raises(ReplyFileError, match="no column spread"):
        check_files(files)
    pq.write_table(table.set_column(2, "exact_total", table["total"]), files.out)
    with pytest.raises(ReplyFileError, match="exact_total is double"):
        check_files(files)
    pq.write_table(table.drop_columns(["id"]), files.out)
    with pytest.raises(ReplyFileError, match="no column id"):
        check_files(files)
    for wrong in (["e0", "e2", "e1"], ["e0", None, "e2"]):
        ids = pa.array(wrong + table["id"].to_pylist()[3:])
        pq.write_table(table.set_column(table.schema.get_field_index("id"), "id", ids), files.out)
        with pytest.raises(
            ValidationError, match=rf"row 1 is of id {wrong[1]}, the event there has id e1; is it"
        ):
            validate_run(spark, files)
    with pytest.raises(OptionError, match="sample"):
        validate_run(spark, files, 0.0)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".ndjson", ".arrow"])
@pytest.mark.parametrize("id_type", ["long", "string", ""])
def test_ids_are_compared_in_every_format(
    spark: SparkSession, tmp_path: Path, suffix: str, id_type: str
) -> None:
    numbered = CENTS.replace('id = "string"', f'id = "{id_type}"')
    if not id_type:
        numbered = CENTS.replace('id = "id"\n', "").replace('id = "string"\n', "")
    rows = [row | {"id": n - 2 if id_type == "long" else f"e {n}"} for n, row in enumerate(payments(5))]
    if not id_type:
        rows = [{name: value for name, value in row.items() if name != "id"} for row in rows]
    rows[3]["amount"] = "no number"
    places = [str(tmp_path / each) for each in ("d.toml", "events.ndjson", f"out{suffix}")]
    Path(places[0]).write_text(numbered, encoding="utf-8")
    Path(places[1]).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert main(["run", places[0], places[1], "--out", places[2], "--skip-bad"]) == 0
    files = RunFiles(places[0], "s", (places[1],), places[2], skip_bad=True)
    report = validate_run(spark, files)
    assert (report.events, report.refused, report.mismatches) == (4, 1, 0), report.as_text()


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".parquet", "PAR1 and no more"),
        (".arrow", "no table"),
        (".ndjson", "no JSON\n"),
        (".ndjson", "[1]\n"),
    ],
)
def test_a_file_of_replies_that_is_damaged_is_told(suffix: str, text: str, tmp_path: Path) -> None:
    files = run(tmp_path, CENTS, payments(20), suffix)
    Path(files.out).write_text(text)
    with pytest.raises(ReplyFileError, match=f"^{files.out}: it cannot be read .*; name the one"):
        check_files(files)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(20))
def test_random_streams_are_equal(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    drawn = case(seed, 500, Profile(control_percent=0))
    rows = [dict(step.event) for step in drawn.steps if hasattr(step, "event")]
    suffix = (".parquet", ".ndjson", ".csv", ".arrow")[seed % 4]
    report = validate_run(spark, run(tmp_path, drawn.definitions, rows, suffix))
    assert report.mismatches == 0, report.as_text()
    assert report.stream == STREAM


@pytest.mark.torture
def test_a_million_events_are_equal_but_for_one_cent(spark: SparkSession, tmp_path: Path) -> None:
    """Every aggregator over every kind of window, with late, duplicate and null events; one reply is wrong."""
    files = run(tmp_path, definitions("rewrite"), events(1, 1_000_000))
    table = pq.read_table(files.out)
    sums = table.column("m0_1").to_pylist()
    row = next(each for each in range(600_000, 1_000_000) if sums[each] is not None)
    sums[row] += 0.01
    planted = pa.array(sums, table.schema.field("m0_1").type)
    pq.write_table(table.set_column(table.schema.get_field_index("m0_1"), "m0_1", planted), files.out)
    report = validate_run(spark, files)
    assert (report.mismatches, report.events) == (1, 1_000_000), report.as_text()
    [wrong] = [check for check in report.checks if check.mismatches]
    assert (wrong.name, [each.row for each in wrong.examples]) == ("m0_1", [row])
    assert not [check for check in report.checks if check.not_checked or not check.compared]
