"""The public engine: what is registered, what is refused, who may open a folder, what stays when it is closed."""

import shutil
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

import railgun
from railgun.catalog.model import FieldDefinition, StreamDefinition
from railgun.engine.errors import (
    EngineStoppedError,
    EventError,
    FolderError,
    FolderLockedError,
    FolderVersionError,
)
from railgun.language.types import STRING
from railgun.registry.errors import DefinitionsError, DifferentDefinitionsError, EngineError, UnknownNameError
from railgun.task.processor import TaskProcessor

STREAM = """
[streams.payments]
time = "ts"
id = "tx"
partitioners = ["card", "*"]
[streams.payments.fields]
tx = "string"
ts = "timestamp"
card = "string"
amount = "decimal(10,2)"
"""
COUNT = """
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total FROM payments GROUP BY card OVER SLIDING 1 HOUR"
"""
DEFINITIONS = STREAM + COUNT


@pytest.fixture
def engine(tmp_path: Path):
    with railgun.Engine(tmp_path / "data") as opened:
        opened.apply(DEFINITIONS)
        yield opened


def event(number: int, **others: object) -> dict[str, object]:
    return {"tx": f"t{number}", "ts": 1_700_000_000_000 + number, "card": "c", "amount": "1.10", **others}


def test_a_reply_says_what_the_interface_promises(engine: railgun.Engine) -> None:
    assert engine.score("payments", event(1)) == {
        "id": "t1",
        "time": 1_700_000_000_001,
        "metrics": {"n": 1, "total": "1.10"},
    }
    assert engine.score("payments", event(1))["duplicate"] == ["card", "*"]
    assert engine.score("payments", event(2, card=None))["metrics"] == {"n": None, "total": None}
    late = engine.score("payments", event(3, ts=1_600_000_000_000))
    assert late["late"] == {"card": "rewritten", "*": "rewritten"}
    assert late["time"] == 1_600_000_000_000


def test_many_at_once_are_answered_in_order(engine: railgun.Engine) -> None:
    replies = engine.score_many("payments", [event(i, card="ab"[i % 2]) for i in range(6)])
    assert [reply["metrics"]["n"] for reply in replies] == [1, 1, 2, 2, 3, 3]
    assert engine.score_many("payments", []) == []


def test_a_table_gets_the_promised_columns(engine: railgun.Engine) -> None:
    rows = pa.Table.from_pylist([event(1), event(1), event(2, card=None), event(3, ts=0)])
    scored = engine.score_table("payments", rows)
    assert scored.column_names == [
        "tx", "n", "total", "late_card", "duplicate_card", "late_all", "duplicate_all", "warming", "partial",
    ]  # fmt: skip
    assert scored.schema.field("total").type == pa.decimal128(38, 2)
    assert scored["tx"].to_pylist() == ["t1", "t1", "t2", "t3"]
    assert scored["n"].to_pylist() == [1, 1, None, 2]
    assert scored["late_card"].to_pylist() == [None, None, None, "rewritten"]
    assert scored["duplicate_card"].to_pylist() == [False, True, None, False]
    assert scored["duplicate_all"].to_pylist() == [False, True, False, False]
    assert scored["warming"].to_pylist() == [[]] * 4
    assert scored["partial"].to_pylist() == [[]] * 4
    empty = engine.score_table("payments", rows.slice(0, 0))
    assert empty.schema == scored.schema
    assert len(empty) == 0


def test_one_bad_event_keeps_the_others_out(engine: railgun.Engine) -> None:
    with pytest.raises(EventError, match=r"event 1: amount: .*no event of this call was taken") as refused:
        engine.score_many("payments", [event(1), event(2, amount=1.5), event(3)])
    assert (refused.value.row, refused.value.errors[0].loc) == (1, ("amount",))
    with pytest.raises(EventError, match=r"row 2: ts: .*further ahead"):
        engine.score_table("payments", pa.Table.from_pylist([event(1), event(2), event(3, ts=2**62)]))
    with pytest.raises(EventError, match="column card is missing"):
        engine.score_table("payments", pa.table({"tx": ["a"], "ts": [1], "amount": [1]}))
    with pytest.raises(EventError, match=r"^column card is int64 and cannot be string, .*: convert before$"):
        engine.score_table("payments", pa.Table.from_pylist([event(1, card=5)]))
    assert engine.score("payments", event(1))["metrics"]["n"] == 1


def test_times_may_be_datetimes_with_a_zone(engine: railgun.Engine) -> None:
    zone = timezone(timedelta(hours=2))
    reply = engine.score("payments", event(1, ts=datetime(2023, 11, 15, 0, 13, 20, 123_999, zone)))
    assert reply["time"] == 1_700_000_000_123
    with pytest.raises(
        EventError, match="ts: the datetime 2023-11-14 22:13:20 has no time zone: give it one"
    ):
        engine.score("payments", event(2, ts=datetime(2023, 11, 14, 22, 13, 20)))


def test_apply_is_done_once_and_says_what_it_did(engine: railgun.Engine, tmp_path: Path) -> None:
    assert engine.apply(DEFINITIONS) == []
    file = tmp_path / "more.toml"
    file.write_text(STREAM + '[[metrics]]\nsql = "SELECT max(amount) AS most FROM payments OVER INFINITE"\n')
    assert engine.apply(file) == ["metric payments.most"]
    assert engine.apply(str(file)) == []
    assert [(m.name, m.home, m.warming) for m in engine.metrics("payments")] == [
        ("n", "card", False),
        ("total", "card", False),
        ("most", "*", False),
    ]
    assert [stream.name for stream in engine.streams()] == ["payments"]


def test_what_differs_is_said_and_nothing_applied(engine: railgun.Engine) -> None:
    other = DEFINITIONS.replace('id = "tx"', 'id = "tx"\nlateness = "9s"').replace("1 HOUR", "2 HOURS")
    with pytest.raises(DifferentDefinitionsError, match=r"lateness.*metric n.*metric total") as refused:
        engine.apply(other + '[[metrics]]\nsql = "SELECT min(amount) AS least FROM payments OVER INFINITE"\n')
    assert [each.what for each in refused.value.differences] == ["lateness", "metric n", "metric total"]
    assert len(engine.metrics("payments")) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda e: e.score("payment", {}), "no stream 'payment'; did you mean payments?"),
        (lambda e: e.drop_metric("payments", "m"), "no metric 'm' of payments"),
        (lambda e: e.metrics("x"), "no stream 'x'"),
        (lambda e: e.drop_stream("x"), "no stream 'x'"),
    ],
)
def test_unknown_names(engine: railgun.Engine, wrong, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message.replace("?", r"\?")):
        wrong(engine)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda e: e.add_metrics("payments", "SELECT count(*) AS n FROM payments OVER INFINITE"),
        lambda e: e.add_metrics("payments", "SELECT sum(card) FROM payments OVER INFINITE"),
        lambda e: e.add_metrics("payments", "SELECT"),
        lambda e: e.add_field("payments", "card", "string"),
        lambda e: e.add_field("payments", "more", "text"),
        lambda e: e.set_lateness("payments", "soon"),
        lambda e: e.set_retention("payments", "1s"),
        lambda e: e.apply("[streams.x]\nfoo = 1\n"),
        lambda e: e.apply("streams = 1\n"),
        lambda e: e.apply("[streams.x]\npartitioners = ['all', '*']\nfields.all = 'string'\n"),
        lambda e: e.create_stream(
            StreamDefinition("x", (FieldDefinition("all", STRING),), partitioners=("all", "*"))
        ),
    ],
)
def test_definitions_that_are_refused_change_nothing(engine: railgun.Engine, wrong) -> None:
    before = engine.streams(), engine.metrics("payments")
    with pytest.raises(DefinitionsError) as refused:
        wrong(engine)
    assert "\n" not in str(refused.value)
    assert (engine.streams(), engine.metrics("payments")) == before
    assert engine.score("payments", event(1))["metrics"]["n"] == 1


def test_a_partitioner_named_all(tmp_path: Path) -> None:
    """As `*` is in the names of folders and columns: alone it can be one."""
    definitions = "[streams.s]\npartitioners = ['all']\nfields.all = 'string'\n"
    query = "SELECT count(*) AS n FROM s GROUP BY all OVER INFINITE"
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(definitions)
        engine.register_metrics("s", query)
        assert [engine.score("s", {"all": each})["metrics"]["n"] for each in "aba"] == [1, 1, 2]
        assert engine.score("s", {"all": None})["metrics"]["n"] is None
    with railgun.Engine(tmp_path / "data") as engine:
        assert engine.score("s", {"all": "a"})["metrics"]["n"] == 3
        engine.drop_stream("s")
        engine.apply(definitions.replace("all", "*", 1))
        engine.register_metrics("s", query)
        assert engine.score("s", {"all": "a"})["metrics"]["n"] == 1


def test_a_folder_keeps_everything(tmp_path: Path) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        engine.score("payments", event(1))
        engine.add_field("payments", "note", "string")
        engine.add_metrics("payments", "SELECT last(note) AS said FROM payments OVER INFINITE")
        engine.score("payments", event(2, note="hi"))
        engine.drop_metric("payments", "total")
        engine.set_lateness("payments", "9s")
        streams, metrics = engine.streams(), engine.metrics("payments")
    with railgun.Engine(tmp_path / "data") as engine:
        assert (engine.streams(), engine.metrics("payments")) == (streams, metrics)
        assert engine.score("payments", event(3))["metrics"] == {"n": 3, "said": "hi"}


def test_a_dropped_stream_leaves_nothing_and_can_begin_anew(tmp_path: Path) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        engine.score("payments", event(1))
        engine.drop_stream("payments")
        assert engine.streams() == []
        assert list((tmp_path / "data" / "streams").iterdir()) == []
        engine.apply(DEFINITIONS)
        assert engine.score("payments", event(1))["metrics"]["n"] == 1
    with railgun.Engine(tmp_path / "data") as engine:
        assert engine.score("payments", event(2))["metrics"]["n"] == 2


def test_two_streams_are_apart(engine: railgun.Engine) -> None:
    engine.apply(DEFINITIONS.replace("payments", "refunds"))
    engine.score("payments", event(1))
    assert engine.score("refunds", event(1))["metrics"]["n"] == 1


def test_a_temporary_folder_is_removed() -> None:
    with railgun.Engine() as engine:
        folder = engine.folder
        assert (folder / "VERSION").read_text() == "1\n"
    assert not folder.exists()


def test_a_second_process_is_told_who_has_the_folder(engine: railgun.Engine) -> None:
    with pytest.raises(FolderLockedError, match="in use by process"):
        railgun.Engine(engine.folder)
    code = f"import railgun\ntry: railgun.Engine({str(engine.folder)!r})\nexcept railgun.EngineError as e: print(e)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert "in use by process" in said.stdout
    assert engine.score("payments", event(1))["metrics"]["n"] == 1


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "VERSION").write_text("2\n")
    with pytest.raises(FolderVersionError, match="version 2"):
        railgun.Engine(tmp_path)
    (tmp_path / "VERSION").write_text("?")
    with pytest.raises(FolderError, match="no version"):
        railgun.Engine(tmp_path)
    (tmp_path / "VERSION").rename(tmp_path / "holiday.jpg")
    with pytest.raises(FolderError, match=r"holiday\.jpg"):
        railgun.Engine(tmp_path)
    with pytest.raises(FolderError):
        railgun.Engine(tmp_path / "holiday.jpg")


def test_a_start_that_was_cut_leaves_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / ".VERSION").write_text("")
    (tmp_path / "lost+found").mkdir()
    with railgun.Engine(tmp_path) as engine:
        assert engine.apply(DEFINITIONS)


def test_a_log_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with railgun.Engine(folder) as engine:
        engine.apply(DEFINITIONS)
        engine.score("payments", event(1))
    shutil.rmtree(folder / "log")
    with pytest.raises(FolderError, match="restore the whole folder"):
        railgun.Engine(folder)


def test_a_log_older_than_the_state_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with railgun.Engine(folder) as engine:
        engine.apply(DEFINITIONS)
    shutil.copytree(folder / "log", tmp_path / "log")
    with railgun.Engine(folder) as engine:
        engine.score_many("payments", [event(number) for number in range(5)])
    shutil.rmtree(folder / "log")
    (tmp_path / "log").rename(folder / "log")
    with pytest.raises(FolderError, match=r"payments/card/0: .*log ends at"):
        railgun.Engine(folder)


def test_an_engine_that_nobody_closes_is_closed_at_the_end(tmp_path: Path) -> None:
    code = (
        "import railgun, sys; e = railgun.Engine(); sys.stdout.write(str(e.folder)); assert e.folder.exists()"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert (said.stderr, Path(said.stdout).exists()) == ("", False)


def test_what_is_closed_says_so(engine: railgun.Engine) -> None:
    engine.close()
    engine.close()
    with pytest.raises(EngineStoppedError, match="closed"):
        engine.score("payments", event(1))


def test_an_error_half_way_stops_the_engine_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        engine.score("payments", event(1))
        with monkeypatch.context() as patch:
            patch.setattr(TaskProcessor, "process", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                engine.score("payments", event(2))
        with pytest.raises(EngineStoppedError, match="division by zero"):
            engine.score("payments", event(3))
    with railgun.Engine(tmp_path / "data") as engine:
        reply = engine.score("payments", event(2))
        assert (reply["metrics"]["n"], reply["duplicate"]) == (2, ["card", "*"])


def _background_that_fails(engine: railgun.Engine, patch: pytest.MonkeyPatch) -> None:
    """The thread has no turn any more: the next call does what is overdue, and that fails."""
    engine._background.end()
    engine._background.join()
    patch.setattr(TaskProcessor, "work", lambda *_, **__: 1 / 0)
    engine._background._next_s = 0.0


def test_background_work_that_fails_in_a_call_takes_nothing_from_its_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        with monkeypatch.context() as patch:
            _background_that_fails(engine, patch)
            assert engine.score("payments", event(1))["metrics"]["n"] == 1
            with pytest.raises(EngineStoppedError, match="division by zero"):
                engine.score("payments", event(2))
    with railgun.Engine(tmp_path / "data") as engine:
        assert engine.score("payments", event(1))["duplicate"] == ["card", "*"]
        with monkeypatch.context() as patch:
            _background_that_fails(engine, patch)
            assert len(engine.streams()) == 1
            with pytest.raises(EngineStoppedError, match="division by zero"):
                engine.streams()


def test_background_work_that_fails_within_a_table_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("railgun.engine.live_stream._BLOCK_ROWS", 2)
    table = pa.Table.from_pylist([event(number) for number in range(1, 6)])
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        with monkeypatch.context() as patch:
            _background_that_fails(engine, patch)
            with pytest.raises(EngineStoppedError, match="division by zero"):
                engine.score_table("payments", table)
    with railgun.Engine(tmp_path / "data") as engine:
        again = engine.score_table("payments", table)
        assert again["duplicate_card"].to_pylist() == [True, True, False, False, False]


def test_threads_share_an_engine(engine: railgun.Engine) -> None:
    counts: list[int] = []

    def work(first: int) -> None:
        for number in range(first, first + 30):
            counts.append(engine.score("payments", event(number, ts=1_700_000_000_000))["metrics"]["n"])

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    engine.add_metrics("payments", "SELECT count(*) AS everything FROM payments OVER INFINITE")
    for thread in threads:
        thread.join()
    assert sorted(counts) == list(range(1, 91))
    assert engine.score("payments", event(300))["metrics"]["everything"] == 91


def test_made_ids_and_arrival_times(tmp_path: Path) -> None:
    clock = [1_000_000]
    text = '[streams.s]\n[streams.s.fields]\nx = "long"\n'
    text += '[[metrics]]\nsql = "SELECT count(*) AS n FROM s OVER SLIDING 1 SECOND"\n'
    with railgun.Engine(tmp_path / "data", now_ms=lambda: clock[0]) as engine:
        engine.apply(text)
        replies = [engine.score("s", {"x": 1})]
        clock[0] -= 500
        replies.append(engine.score("s", {"x": 1}))
        table = engine.score_table("s", pa.table({"x": [1, 2]}))
    assert [(r["time"], r["metrics"]["n"]) for r in replies] == [(1_000_000, 1), (1_000_000, 2)]
    ids = [*(r["id"] for r in replies), *table["id"].to_pylist()]
    assert ids == sorted(set(ids))
    assert table["n"].to_pylist() == [3, 4]
    with railgun.Engine(tmp_path / "data", now_ms=lambda: clock[0]) as engine:
        assert engine.score("s", {})["time"] == 1_000_000


def test_every_error_is_an_engine_error_of_one_line() -> None:
    assert railgun.EngineError is EngineError
    kinds = [DefinitionsError, EventError, FolderError, EngineStoppedError, UnknownNameError]
    assert all(issubclass(kind, EngineError) for kind in kinds)
