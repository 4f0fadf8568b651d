"""The payments generator: the same seed gives the same events, and they have the shape that was asked for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.distributions import WEEK_MS, WeeklyClock, numbered, zipf
from bench.payments import BLOCK_EVENTS, DUPLICATE_REACH_EVENTS, Payments, blocks, field_types, main

SMALL = Payments(events=BLOCK_EVENTS + 1_000, seed=7)
WIDE = replace(SMALL, fields=103)


def table(payments: Payments) -> Any:
    return pa.Table.from_batches(blocks(payments)).combine_chunks()


def times_ms(events: Any) -> npt.NDArray[np.int64]:
    times: npt.NDArray[np.int64] = events["ts"].cast(pa.int64()).to_numpy()
    return times


@pytest.mark.parametrize("payments", [SMALL, WIDE])
def test_the_seed_decides_every_event(payments: Payments) -> None:
    once = table(payments)
    assert once.equals(table(payments))
    assert not once.equals(table(replace(payments, seed=8)))


def test_a_longer_run_begins_with_the_shorter_one() -> None:
    longer = table(replace(SMALL, events=2 * BLOCK_EVENTS + 5))
    assert longer.slice(0, SMALL.events).equals(table(SMALL))


def test_wide_events_are_the_narrow_ones_with_more_fields() -> None:
    wide = table(WIDE)
    assert wide.num_columns == 103
    assert wide.column_names == list(field_types(103))
    assert wide.select(list(field_types(5))).equals(table(SMALL))
    assert {str(kind) for kind in wide.schema.types} == {
        "string",
        "timestamp[ms, tz=UTC]",
        "double",
        "int64",
        "bool",
    }
    nulls = [wide[name].null_count / wide.num_rows for name in wide.column_names[5:]]
    assert min(nulls) == 0
    assert 0.19 < max(nulls) < 0.21


@pytest.mark.parametrize("events", [0, 1, BLOCK_EVENTS, BLOCK_EVENTS + 1])
def test_as_many_events_as_asked_for(events: int) -> None:
    assert sum(batch.num_rows for batch in blocks(Payments(events))) == events


def test_ids_are_distinct_times_in_order_amounts_whole_cents() -> None:
    events = table(SMALL)
    assert len(events["tx_id"].unique()) == SMALL.events
    times = times_ms(events)
    assert times[0] >= SMALL.start_ms
    assert np.all(np.diff(times) >= 0)
    amounts = events["amount"].to_pylist()
    assert all(amount == round(amount, 2) > 0 for amount in amounts)


def test_an_exponent_makes_cards_as_frequent_as_zipf_says() -> None:
    n, draws = 1_000, 200_000
    drawn = np.bincount(zipf(np.random.default_rng(1), n, 1.0, draws), minlength=n)
    by_rank = np.sort(drawn)[::-1] / draws
    harmonic = float(np.sum(1 / np.arange(1, n + 1)))
    np.testing.assert_allclose(by_rank[:5], 1 / np.arange(1, 6) / harmonic, rtol=0.05)
    even = np.bincount(zipf(np.random.default_rng(1), n, 0.0, draws), minlength=n)
    assert even.max() < 2 * even.min()


@pytest.mark.parametrize("n", [1, 2, 97, 100_000])
def test_zipf_scatters_without_losing_a_number(n: int) -> None:
    drawn = zipf(np.random.default_rng(1), n, 0.5, 40 * n)
    assert drawn.min() >= 0
    assert len(np.unique(drawn)) > 0.99 * n
    assert drawn.max() < n


def test_hours_and_days_have_their_rhythm() -> None:
    week = WeeklyClock(Payments(0).start_ms, rate_per_s=1.0, rhythm=True)
    times = week.times_ms(np.arange(WEEK_MS / 1000))
    into_week = times - Payments(0).start_ms
    assert into_week[0] == 0
    assert WEEK_MS - 60_000 < into_week[-1] < WEEK_MS
    hours = np.bincount(into_week // 3_600_000 % 24, minlength=24)
    assert hours[18] > 5 * hours[3]
    days = np.bincount(into_week // 86_400_000, minlength=7)
    assert days.argmax() == 5
    assert days.argmin() == 6


@pytest.mark.parametrize("start_ms", [0, 1_704_067_200_000, 1_704_240_123_456])
def test_a_clock_without_rhythm_keeps_its_rate_from_any_start(start_ms: int) -> None:
    times = WeeklyClock(start_ms, rate_per_s=10.0, rhythm=False).times_ms(np.arange(0.0, 20 * 86_400, 10_000))
    np.testing.assert_allclose(times, start_ms + np.arange(0.0, 20 * 86_400, 10_000) * 100, atol=2)


def test_the_share_of_late_events_and_their_lag() -> None:
    late = replace(SMALL, late_share=0.3, late_lag_ms=600_000)
    behind = times_ms(table(SMALL)) - times_ms(table(late))
    assert 0.29 < np.mean(behind > 0) < 0.31
    assert behind.min() == 0
    assert 590_000 < behind.max() <= 600_000


def test_duplicates_are_earlier_events_sent_again() -> None:
    events = table(replace(SMALL, duplicate_share=0.2))
    plain = table(SMALL)
    place = np.array([int(tx_id[1:]) for tx_id in events["tx_id"].to_pylist()])
    assert events.equals(plain.take(pa.array(place)))
    back = np.arange(SMALL.events) - place
    assert 0.19 < np.mean(back > 0) < 0.21
    assert back.min() == 0
    assert DUPLICATE_REACH_EVENTS < back.max() < 20 * DUPLICATE_REACH_EVENTS


def test_numbered_names_keep_their_width() -> None:
    assert numbered("c", np.array([0, 7, 999]), 3).to_pylist() == ["c000", "c007", "c999"]
    assert numbered("c", np.array([], dtype=np.int64), 3).to_pylist() == []
    with pytest.raises(ValueError, match="do not fit 3 digits"):
        numbered("c", np.array([1_000]), 3)


def test_the_command_writes_the_same_events_in_both_formats(tmp_path: Path) -> None:
    options = ["--events=300", "--fields=103", "--seed=7", "--late-share=0.5", "--no-rhythm"]
    assert main([*options, f"--out={tmp_path / 'p.parquet'}"]) == 0
    assert main([*options, f"--out={tmp_path / 'p.ndjson'}"]) == 0
    from_parquet = pq.read_table(tmp_path / "p.parquet")
    assert from_parquet.equals(table(Payments(300, 103, seed=7, late_share=0.5, rhythm=False)))
    for place, name in enumerate(from_parquet.column_names):
        if pa.types.is_timestamp(from_parquet[name].type):
            from_parquet = from_parquet.set_column(place, name, from_parquet[name].cast(pa.int64()))
    lines = (tmp_path / "p.ndjson").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == from_parquet.to_pylist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fields=7", "--out=p.parquet"], "5 or 103"),
        (["--out=p.csv"], "suffix"),
        (["--late-share=1.5", "--out=p.parquet"], "between 0 and 1"),
        (["--cards=0", "--out=p.parquet"], "can be drawn"),
        (["--out=no/such/folder/p.parquet"], "no/such/folder"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--events=10", *options]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("bench.payments: ")
    assert message in line
