"""Limits of the engine's validator: strings and whole records. What is refused harms nothing; nothing is half taken."""

from pathlib import Path

import pyarrow as pa
import pytest

import railgun
from railgun.engine.errors import EventError
from railgun.registry.errors import DefinitionsError

LIMIT_BYTES = 65_535
DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
name = "string"
[[metrics]]
sql = \"\"\"SELECT last(name) AS newest, last(UPPER(name)) AS upper, last(LOWER(name)) AS lower, count(name) AS names,
count(UPPER(name)) AS uppers, count(LOWER(name)) AS lowers, count_distinct(name) AS distinct, min(name) AS least
FROM s GROUP BY card OVER SLIDING 1 HOUR\"\"\"
"""
WHOLE = "x" * LIMIT_BYTES
# In UPPER each of these two bytes becomes three; in LOWER the two of the other become three.
UPPER_GROWS, LOWER_GROWS = "ŉ", "İ"


@pytest.fixture
def engine(tmp_path: Path):
    with railgun.Engine(tmp_path / "data") as opened:
        opened.apply(DEFINITIONS)
        yield opened


def event(number: int, name: str | None, card: str = "c") -> dict[str, object]:
    return {"id": number, "ts": 1_700_000_000_000 + number, "card": card, "name": name}


def scored(engine: railgun.Engine, events: list[dict[str, object]], how: str) -> list[dict[str, object]]:
    if how == "table":
        columns = ("newest", "upper", "lower", "names", "uppers", "lowers", "distinct", "least")
        rows = engine.score_table("s", pa.Table.from_pylist(events)).to_pylist()
        return [{name: row[name] for name in columns} for row in rows]
    if how == "together":
        return [reply["metrics"] for reply in engine.score_many("s", events)]
    return [engine.score("s", each)["metrics"] for each in events]


@pytest.mark.parametrize("how", ["alone", "together", "table"])
def test_a_string_may_have_65535_bytes(engine: railgun.Engine, how: str) -> None:
    (metrics,) = scored(engine, [event(1, WHOLE, card=WHOLE)], how)
    assert metrics == {
        "newest": WHOLE, "upper": WHOLE.upper(), "lower": WHOLE, "names": 1, "uppers": 1, "lowers": 1,
        "distinct": 1, "least": WHOLE,
    }  # fmt: skip


@pytest.mark.parametrize("how", ["alone", "together", "table"])
@pytest.mark.parametrize("too_long", [WHOLE + "x", "x" * 65_534 + "ß", "\N{GRINNING FACE}" * 16_384])
@pytest.mark.parametrize("field", ["card", "name"])
def test_a_longer_one_is_refused_and_harms_nothing(
    engine: railgun.Engine, how: str, too_long: str, field: str
) -> None:
    first = event(1, "a")
    scored(engine, [first], how)
    with pytest.raises(EventError, match="65535") as caught:
        scored(engine, [event(2, "b"), {**event(3, "c"), field: too_long}], how)
    assert caught.value.errors[0].loc == (field,)
    # With the others of its call, but where each was a call of its own.
    (metrics,) = scored(engine, [event(4, "d")], how)
    assert metrics["names"] == (3 if how == "alone" else 2)


@pytest.mark.parametrize("how", ["alone", "together", "table"])
def test_upper_and_lower_that_outgrow_the_limit_are_null(engine: railgun.Engine, how: str) -> None:
    fits, grows = UPPER_GROWS * 21_845, UPPER_GROWS * 21_846
    shrinks = LOWER_GROWS * 32_767
    metrics = scored(engine, [event(1, fits), event(2, grows), event(3, shrinks)], how)
    assert metrics[0]["upper"] == "ʼN" * 21_845
    assert (metrics[1]["upper"], metrics[1]["newest"]) == (metrics[0]["upper"], grows)
    assert [each["uppers"] for each in metrics] == [1, 1, 2]
    assert [each["lowers"] for each in metrics] == [1, 2, 2]
    assert metrics[2]["lower"] == grows
    assert [each["distinct"] for each in metrics] == [1, 2, 3]


def test_long_strings_come_back_after_a_restart(tmp_path: Path) -> None:
    for number in range(3):
        with railgun.Engine(tmp_path / "data") as engine:
            engine.apply(DEFINITIONS)
            metrics = engine.score("s", event(number, f"{number}{WHOLE[1:]}"))["metrics"]
            assert metrics["newest"] == f"{number}{WHOLE[1:]}"
            assert (metrics["least"], metrics["distinct"]) == (f"0{WHOLE[1:]}", number + 1)


def wide(fields: int) -> str:
    named = "\n".join(f'f{i} = "string"' for i in range(fields))
    head, _ = DEFINITIONS.split("[[metrics]]")
    return f'{head}{named}\n[[metrics]]\nsql = "SELECT count(*) AS n FROM s GROUP BY card OVER INFINITE"\n'


def test_a_row_too_large_for_the_log_is_refused_before_any_row_is_taken(tmp_path: Path) -> None:
    """Such a row comes in a later block than the first: the rows before it must not count."""
    fields, rows = 300, 5_000
    columns: dict[str, pa.Array] = {
        "id": pa.array(range(rows)),
        "ts": pa.array([1_700_000_000_000 + i for i in range(rows)]),
        "card": pa.array(["c"] * rows),
        "name": pa.nulls(rows, pa.string()),
    }
    for i in range(fields):
        columns[f"f{i}"] = pa.array([None] * (rows - 1) + [WHOLE])
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(wide(fields))
        with pytest.raises(
            EventError, match=r"row 4999: its record would have 196\d{5} bytes.*no row"
        ) as caught:
            engine.score_table("s", pa.table(columns))
        assert caught.value.row == rows - 1
        assert engine.score("s", event(1, None))["metrics"] == {"n": 1}
        with pytest.raises(EventError, match="a record has 196"):
            engine.score("s", {**event(2, None), **{f"f{i}": WHOLE for i in range(fields)}})
        assert engine.score("s", event(3, None))["metrics"] == {"n": 2}


def test_what_is_fixed_at_creation_is_refused(engine: railgun.Engine) -> None:
    changed = DEFINITIONS.replace('partitioners = ["card"]', 'partitioners = ["card"]\ndedup_events = 5')
    with pytest.raises(DefinitionsError, match="dedup_events"):
        engine.apply(changed)
