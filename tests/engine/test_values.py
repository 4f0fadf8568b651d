"""Value queries change nothing, are answered as duplicates are, and say what is wrong with them."""

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from railgun.engine.engine import Engine
from railgun.engine.errors import QueryError
from railgun.registry.errors import UnknownNameError
from railgun.state.rows.reader import RowReader
from railgun.task.admission import _CLOCK
from railgun.task.queries import QueryWork
from railgun.task.settings import TaskSettings
from tests.engine.campaign import run
from tests.engine.player import SMALLEST
from tests.oracle.compare import metric_differences

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "id"
partitioners = ["card", "merchant"]
partitions = 2
lateness = "1h"
[streams.payments.fields]
id = "string"
ts = "timestamp"
card = "string"
merchant = "long"
amount = "decimal(9,2)"
country = "string"
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total, max(amount) AS most FROM payments GROUP BY card OVER SLIDING 1 HOUR"
[[metrics]]
sql = "SELECT count(*) AS others FROM payments GROUP BY card OVER SLIDING 1 HOUR EXCLUDE CURRENT"
[[metrics]]
sql = "SELECT count_distinct(country) AS countries FROM payments GROUP BY card OVER TUMBLING 1 DAY"
[[metrics]]
sql = "SELECT last(country) AS country_last FROM payments GROUP BY card, merchant OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS of_merchant FROM payments GROUP BY merchant OVER SLIDING 1 HOUR"
[[metrics]]
sql = "DERIVE total / n AS mean, amount - most AS above FROM payments"
"""
ROWS = b"r", b"s"
OF_A_CARD = ["n", "total", "most", "others", "countries", "mean"]


def event(number: int, card: str = "c1", merchant: int = 7) -> dict[str, Any]:
    return {
        "id": f"e{number}",
        "ts": 1_000_000 + 1_000 * number,
        "card": card,
        "merchant": merchant,
        "amount": f"{number % 50}.25",
        "country": f"C{number % 5}",
    }


def engine_of(folder: Path, settings: TaskSettings | None = None) -> Engine:
    engine = Engine(folder, durability="os", settings=settings, now_ms=lambda: 1 << 40)
    engine.apply(DEFINITIONS)
    return engine


def content(engine: Engine) -> list[Any]:
    """What a query must not change: rows in memory and on disk, clocks, positions, what checkpoints will write."""
    found = []
    # The background thread works on the tasks while it holds this lock.
    with engine._lock:
        for host in engine._streams.live("payments").hosts:
            task = host.task
            rows = task.store.scan_values(*ROWS, 1_000_000)
            clock_ms = task.admission.clock_ms
            found.append((task.digest(), task.table.stats(), len(rows), clock_ms, task.position))
    return found


@pytest.mark.parametrize("settings", [None, SMALLEST])
def test_ten_thousand_unknown_keys_change_nothing(settings: TaskSettings | None, tmp_path: Path) -> None:
    with engine_of(tmp_path / "data", settings) as engine:
        engine.score_many("payments", [event(number, f"c{number % 40}") for number in range(300)])
        engine.close()
    with engine_of(tmp_path / "data", settings) as engine:
        before = content(engine)
        keys = [{"card": f"unknown {number}", "merchant": number + 100} for number in range(10_000)]
        answers = engine.values("payments", keys)
        assert all(each["metrics"]["n"] == 0 and each["metrics"]["of_merchant"] == 0 for each in answers)
        assert content(engine) == before


def _makes_rows(patch: pytest.MonkeyPatch) -> None:
    """Rows are loaded, and made where there are none, as for events."""
    cells_of = RowReader.cells_of

    def loaded(self: RowReader, group: int, hashes: Any) -> Any:
        missing = np.column_stack([np.full(len(hashes), group, np.uint64), hashes])
        tables[id(self)].load(np.ascontiguousarray(missing), len(missing))
        return cells_of(self, group, hashes)

    tables: dict[int, Any] = {}
    answer = QueryWork.answer

    def noted(self: QueryWork, *arguments: Any) -> Any:
        table = self._task.table
        tables[id(table.reader)] = table
        table.next_stamp()
        return answer(self, *arguments)

    patch.setattr(RowReader, "cells_of", loaded)
    patch.setattr(QueryWork, "answer", noted)


def _moves_the_clock(patch: pytest.MonkeyPatch) -> None:
    """A query is of a time, as an event is."""
    answer = QueryWork.answer

    def moved(self: QueryWork, *arguments: Any) -> Any:
        replies = answer(self, *arguments)
        self._task.admission._words[_CLOCK] += 1
        return replies

    patch.setattr(QueryWork, "answer", moved)


@pytest.mark.parametrize("plant", [_makes_rows, _moves_the_clock])
def test_a_query_that_changes_something_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with engine_of(tmp_path / "data") as engine:
        engine.score("payments", event(0))
        before = content(engine)
        engine.values("payments", [{"card": "unknown"}])
        assert content(engine) != before


def _reads_the_bucket_that_is_past(patch: pytest.MonkeyPatch) -> None:
    """The rows of tumbling windows are read as they lie there: `run` is what empties them."""
    from railgun.task import value_reader

    at = value_reader.at
    set_up = value_reader.ValueReader.__init__

    def sliding(self: Any, program: Any, rows: Any, pool: Any) -> None:
        set_up(self, program, rows, pool)
        self._nodes = program.nodes.copy()
        self._nodes[:, at.NODE_KIND] = at.SLIDING
        self._context[at.RUN_NODES] = value_reader.address(self._nodes)

    patch.setattr(value_reader.ValueReader, "__init__", sliding)


def _forgets_the_clock(patch: pytest.MonkeyPatch) -> None:
    """Where a task answered is said a millisecond off."""
    answer = QueryWork.answer

    def late(self: QueryWork, *arguments: Any) -> Any:
        found = answer(self, *arguments)
        found.decoded.time[: found.n] += 1
        return found

    patch.setattr(QueryWork, "answer", late)


@pytest.mark.parametrize("plant", [_reads_the_bucket_that_is_past, _forgets_the_clock])
def test_wrong_answers_are_caught_by_random_cases(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(run(seed, 100, tmp_path / str(seed)) for seed in range(1_000, 1_040))


def test_they_equal_what_duplicates_are_answered(tmp_path: Path) -> None:
    chance = random.Random(5)
    with engine_of(tmp_path / "data", SMALLEST) as engine:
        for number in range(400):
            sent = event(number, f"c{chance.randrange(20)}", chance.randrange(5))
            sent["ts"] += chance.choice((0, 0, -5_000, 3_600_000))
            engine.score("payments", sent)
            (values,) = engine.values("payments", [{"card": sent["card"], "merchant": sent["merchant"]}])
            again = engine.score("payments", sent)
            assert again["duplicate"] == ["card", "merchant"]
            expected = {name: value for name, value in again["metrics"].items() if name != "above"}
            assert list(metric_differences(expected, values["metrics"])) == []


def test_while_others_score(tmp_path: Path) -> None:
    """Threads may share an engine: each answer is of one place in the log, and places only grow."""
    with engine_of(tmp_path / "data") as engine:
        done = threading.Event()

        def score() -> None:
            try:
                for number in range(2_000):
                    engine.score("payments", event(number))
            finally:
                done.set()

        thread = threading.Thread(target=score)
        thread.start()
        last = -1
        while not done.is_set():
            (found,) = engine.values("payments", [{"card": "c1"}], ["n"])
            offset = found["as_of"]["card"]["offset"]
            assert offset >= last
            last = offset
        thread.join()
        (found,) = engine.values("payments", [{"card": "c1"}], ["n"])
        assert found["metrics"]["n"] == 2_000


def test_what_an_answer_says(tmp_path: Path) -> None:
    with engine_of(tmp_path / "data") as engine:
        engine.score("payments", event(3))
        first, second, third = engine.values("payments", [
            {"card": "c1"}, {"merchant": 7, "card": "c1"}, {"card": None}
        ])  # fmt: skip
        assert list(first["metrics"]) == OF_A_CARD
        assert first["key"] == {"card": "c1"}
        assert first["metrics"]["total"] == "3.25"
        assert first["as_of"]["card"]["time"] == 1_003_000
        assert second["key"] == {"merchant": 7, "card": "c1"}
        assert second["metrics"]["country_last"] == "C3"
        assert set(second["as_of"]) == {"card", "merchant"}
        assert third["as_of"] == {}
        assert set(third["metrics"].values()) == {None}
        assert engine.values("payments", []) == []


@pytest.mark.parametrize(
    ("keys", "metrics", "message"),
    [
        ([{}], None, "a key of no field determines no metric of payments; its metrics group by card"),
        ([{"crd": "c1"}], None, "key 0 crd: payments has no such field; did you mean card?"),
        ([{"amount": 1}], None, "key 0 amount: no metric of payments groups by it"),
        ([{"card": "c1"}, {"card": 5}], None, "key 1 card: the number 5 is not a string"),
        ([{"card": "c1"}] * 700 + [{"card": 5}], None, "key 700 card: the number 5 is not a string"),
        ([{"merchant": "7"}], None, "the string '7' is not a long"),
        (["c1"], None, "key 0: a key is an object of fields and their values"),
        ([{"card": "c1"}], ["country_last"], "groups by card, merchant; the key lacks merchant"),
        ([{"card": "c1"}], ["above"], "metrics: above reads amount of an event, which a query does not have"),
        ([{"card": "c1"}], ["nn"], "metrics: payments has no metric 'nn'; did you mean n?"),
    ],
)
def test_what_is_refused(keys: Any, metrics: Any, message: str, tmp_path: Path) -> None:
    with engine_of(tmp_path / "data") as engine:
        with pytest.raises(QueryError) as caught:
            engine.values("payments", keys, metrics)
        assert message in str(caught.value)
        engine.score("payments", event(0))


@pytest.mark.parametrize("keys", [{"card": "c1"}, "c1", None, iter([{"card": "c1"}])])
def test_keys_that_are_no_list(keys: Any, tmp_path: Path) -> None:
    with (
        engine_of(tmp_path / "data") as engine,
        pytest.raises(QueryError, match="a list of keys belongs here"),
    ):
        engine.values("payments", keys)


def test_of_many_errors_the_first_are_told(tmp_path: Path) -> None:
    with engine_of(tmp_path / "data") as engine:
        with pytest.raises(QueryError) as caught:
            engine.values("payments", [{f"f{place}": 1 for place in range(10)} for _ in range(1_000)])
        assert len(caught.value.errors) <= 30


def test_a_stream_that_there_is_not(tmp_path: Path) -> None:
    with engine_of(tmp_path / "data") as engine, pytest.raises(UnknownNameError):
        engine.values("payment", [{"card": "c1"}])
