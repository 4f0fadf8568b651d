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
from railgun.spark.sessions import own_session
from railgun.spark.validation.run_source import RunFiles, _RunReading
from railgun.spark.validation.translate import FIELD_PREFIX
from railgun.spark.validation.validate_run import ValidationError, check_files, validate_run
from tests.spark.runs import (
    CONSTRUCTS,
    START_MS,
    add_to_replies,
    definitions,
    events,
    partitioners_in_spark,
    run,
)
from tests.spark.runs import STREAM as STREAM_OF_RUNS
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


@pytest.mark.parametrize(
    ("policy", "windows", "is_compiled"), [("rewrite", (0, 1, 3, 6), False), ("discard", (2, 4, 5), True)]
)
def test_everything_is_equal(
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    policy: str,
    windows: tuple[int, ...],
    is_compiled: bool,
) -> None:
    if is_compiled:
        request.getfixturevalue("as_in_production")
    assert own_session(spark).conf.get("spark.sql.codegen.wholeStage") == str(is_compiled).lower()
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
    rows = files.rows(spark, files.defined())
    fields = [name for name in rows.columns if name.startswith(FIELD_PREFIX)]
    assert fields == ["f_card", "f_amount", "f_price"]
    assert [row["f_amount"] for row in rows.collect()] == [0, 1 / 7, 2 / 7]


def test_what_is_odd_but_right_is_no_error(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names that differ in their case alone; a row that is no event; sums that doubles cannot decide."""
    odd = CENTS.replace('id = "string"', 'id = "long"\nshop = "long"')
    odd = odd.replace('card = "string"', 'card = "string"\nCard = "string"')
    odd = odd.replace("avg(price) AS mean", "avg(price) AS TOTAL").replace("BY card", "BY card, Card")
    odd = odd.replace('["card"]', '["card", "shop"]')
    odd += "[[metrics]]\nsql = 'SELECT sum(amount) AS vast FROM s GROUP BY shop OVER INFINITE'"
    amounts: list[object] = [*(n / 7 for n in range(15)), "no number", 1.0, 1.7e308, 1.7e308, 2.0]
    rows = [
        row | {"id": n - 9, "Card": f"{n % 2}", "shop": min(n, 16), "amount": amount}
        for n, (row, amount) in enumerate(zip(payments(20), amounts))
    ]
    files = run(tmp_path, odd, rows, ".csv", skip_bad=True)
    before = SparkSession.getActiveSession()
    assert main(["validate", files.definitions, *files.events, "--out", files.out, "--skip-bad"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    compared = {words[0]: int(words[1]) for words in map(str.split, lines) if words[1].isdigit()}
    assert compared["total"] == compared["TOTAL"] == compared["vast"] == 20
    values = sum(compared.values())
    said = f"19 events (1 rows refused), {values} values compared: {values - 2} equal, 2 undecided"
    assert last == said
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
    add_to_replies(files, "total", {41: 0.01})
    add_to_replies(files, "exact_total", {7: Decimal("0.01")})
    add_to_replies(files, "duplicate_card", {3: True})
    words = ["validate", files.definitions, *files.events, "--out", files.out]
    # All three cards are in the sample.
    assert main([*words, "--sample", "0.9", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["sample"], report["events"]) == (0.9, 90)
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
    assert example["row"] == 7
    assert Decimal(example["got"]) - Decimal(example["expected"]) == Decimal("0.01")


def read(files: RunFiles) -> pa.Table:
    """The rows of a run, as a worker of Spark's reads them."""
    return pa.Table.from_batches(_RunReading(files, files.defined(), 1 << 62).of_one(iter([None])))


def test_a_file_that_does_not_belong_is_told(spark: SparkSession, tmp_path: Path) -> None:
    files = run(tmp_path, CENTS, payments(20))
    table = pq.read_table(files.out)
    pq.write_table(table.slice(0, 19), files.out)
    with pytest.raises(ReplyFileError, match="ends after 19 replies"):
        read(files)
    pq.write_table(table.drop_columns(["spread"]), files.out)
    with pytest.raises(ReplyFileError, match="no column spread"):
        check_files(files)
    pq.write_table(table.set_column(2, "exact_total", table["total"]), files.out)
    with pytest.raises(ReplyFileError, match="exact_total is double"):
        check_files(files)
    pq.write_table(table.drop_columns(["id"]), files.out)
    with pytest.raises(ReplyFileError, match="no column id"):
        check_files(files)
    for wrong in (["e0", None, "e2"], ["e0", "e2", "e1"]):
        ids = pa.array(wrong + table["id"].to_pylist()[3:])
        pq.write_table(table.set_column(table.schema.get_field_index("id"), "id", ids), files.out)
        said = rf"row 1 is of id {wrong[1]}, the event there has id e1; is it"
        with pytest.raises(ReplyFileError, match=said):
            read(files)
    # Told as what it is where a worker of Spark's raises it.
    with pytest.raises(ValidationError, match=said):
        validate_run(spark, files)
    with pytest.raises(OptionError, match="sample"):
        validate_run(spark, files, 0.0)


@pytest.mark.parametrize("id_type", ["long", "string", ""])
def test_replies_are_read_alike_from_every_format(tmp_path: Path, id_type: str) -> None:
    """With ids, which are compared as they are read; and with a row that is no event."""
    numbered = CENTS.replace('id = "string"', f'id = "{id_type}"')
    if not id_type:
        numbered = CENTS.replace('id = "id"\n', "").replace('id = "string"\n', "")
    rows = [row | {"id": n - 2 if id_type == "long" else f"e {n}"} for n, row in enumerate(payments(5))]
    if not id_type:
        rows = [{name: value for name, value in row.items() if name != "id"} for row in rows]
    rows[3]["amount"] = "no number"
    found = []
    for suffix in (".parquet", ".csv", ".ndjson", ".arrow"):
        files = run(tmp_path, numbered, rows, suffix, skip_bad=True)
        found.append(read(files))
    assert [(len(each), each["t"].null_count) for each in found] == [(5, 1)] * 4
    assert found[0]["r_total"].to_pylist() == [0, 1 / 7, 2 / 7, None, 1 / 7 + 4 / 7]
    assert all(each.equals(found[0]) for each in found)


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
@pytest.mark.usefixtures("as_in_production")
@pytest.mark.parametrize("seed", range(20))
def test_random_streams_are_equal(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    drawn = case(seed, 500, Profile(control_percent=0, derives=True))
    rows = [dict(step.event) for step in drawn.steps if hasattr(step, "event")]
    suffix = (".parquet", ".ndjson", ".csv", ".arrow")[seed % 4]
    files = run(tmp_path, drawn.definitions, rows, suffix)
    with partitioners_in_spark():
        report = validate_run(spark, files)
        assert report.mismatches == 0, report.as_text()
        assert report.stream == STREAM


def test_what_the_language_has_beside_windows(spark: SparkSession, tmp_path: Path) -> None:
    """Without the event itself, conditions of items, functions, zones, derived metrics: equal but for two values."""
    files = run(tmp_path, STREAM_OF_RUNS.format(policy="discard") + CONSTRUCTS, events(5, 300))
    replies = pq.read_table(files.out)
    wrong = {}
    for name in ("spent", "rest"):
        values = replies.column(name).to_pylist()
        wrong[name] = [next(row for row in range(200, 300) if values[row] is not None)]
        add_to_replies(files, name, {wrong[name][0]: 1})
    report = validate_run(spark, files)
    found = {check.name: [each.row for each in check.examples] for check in report.checks if check.mismatches}
    assert found == wrong, report.as_text()
    assert not [check for check in report.checks if check.not_checked or not check.compared]


@pytest.mark.torture
@pytest.mark.usefixtures("as_in_production")
def test_a_million_events_are_equal_but_for_one_cent(spark: SparkSession, tmp_path: Path) -> None:
    """Every aggregator over every kind of window, and all else that the language has, with late, duplicate and null
    events; one reply is wrong.
    """
    files = run(tmp_path, definitions("rewrite") + CONSTRUCTS, events(1, 1_000_000))
    sums = pq.read_table(files.out).column("m0_1").to_pylist()
    row = next(each for each in range(600_000, 1_000_000) if sums[each] is not None)
    add_to_replies(files, "m0_1", {row: 0.01})
    report = validate_run(spark, files)
    assert (report.mismatches, report.events) == (1, 1_000_000), report.as_text()
    [wrong] = [check for check in report.checks if check.mismatches]
    assert (wrong.name, [each.row for each in wrong.examples]) == ("m0_1", [row])
    assert not [check for check in report.checks if check.not_checked or not check.compared]
