"""What was answered lately: which values are kept of which replies, how many, and what is not known."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from frontend.access.masks import Masks
from frontend.backend.live_figures import Way
from frontend.live import answered as answered_module
from frontend.live.answered import KEPT_MAX, TOLD_MIN, Answered
from frontend.pages.registry.models import AnsweredMetric
from frontend.problems import problem
from frontend.scoring.noted import ROWS_MAX, note_answers
from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.definitions import parse_definitions
from railgun.ingest.replies import Reply
from railgun.registry import evolution
from railgun.telemetry.recording import StreamRecord

NOW_MS = 1_700_000_000_000
DEFINITIONS = """
[streams.s]
[streams.s.fields]
x = "double"
price = "decimal(9,2)"
name = "string"
[[metrics]]
sql = "SELECT count(*) AS n, sum(price) AS total, last(name) AS latest, max(x) AS most FROM s OVER INFINITE"
[[metrics]]
sql = "DERIVE n > 3 AS many FROM s"
"""
NAMES = ("n", "total", "latest", "most", "many")


class Scene:
    """What was answered of a stream, with a clock of the test's own."""

    def __init__(self, *masked: str) -> None:
        self.catalog = Catalog(evolution.missing(Catalog(), parse_definitions(DEFINITIONS)))
        self.copied: dict[str, StreamEntry] = {}
        self.record, self.now_ms = StreamRecord(), NOW_MS
        self.changed()
        self.answered = Answered(lambda: self.copied, Masks(masked), lambda: self.now_ms)
        self.tick()

    def changed(self) -> None:
        self.copied = self.catalog.copy().streams

    def tick(self) -> None:
        self.now_ms += 1_000
        self.answered.tick([("s", Way.HTTP, self.record)])
        asyncio.run(self.answered.digest())

    def answer(self, *replies: Any) -> None:
        if self.record.wants_answers:
            note_answers(self.record, replies)

    def lately(self, metric: str) -> dict[str, Any]:
        found = self.answered.lately("s", metric)
        assert found is not None
        told = {"name": metric, "front_end": {"name": "f", "started_ms": NOW_MS}, **found}
        assert AnsweredMetric.model_validate(told).model_dump(by_alias=True) == told
        return found

    def shares(self) -> Mapping[str, float]:
        found = self.answered.null_shares("s")
        return {} if found is None else found["shares"]


@pytest.fixture
def scene() -> Scene:
    return Scene()


_types: dict[Sequence[str], Any] = {}


def reply(values: Mapping[str, Any], *warming: str) -> Reply:
    """A reply to an event, whose members of metrics have names of their own, as those of the service have."""
    names = tuple(values)
    members = [(f"m{place}", Any) for place in range(len(names))]
    if names not in _types:
        renamed = {member: name for (member, _), name in zip(members, names)}
        _types[names] = msgspec.defstruct("Metrics", members, rename=renamed, gc=False)
    return Reply("a", 1, _types[names](*values.values()), warming=warming or msgspec.UNSET)


def whole(number: int, **more: Any) -> Reply:
    own = {"n": number, "total": f"{number}.50", "latest": "a name", "most": None, "many": number > 3}
    return reply(own | more)


def test_values_of_every_kind(scene: Scene) -> None:
    assert scene.answered.null_shares("s") is None
    assert scene.lately("n")["rows"] == 0
    scene.answer(*(whole(each) for each in range(8)))
    scene.tick()
    assert scene.answered.null_shares("s") == {
        "as_of_ms": scene.now_ms,
        "shares": {"n": 0, "total": 0, "latest": 0, "most": 1, "many": 0},
        "always": [],
    }
    bins = [{"from": float(each), "to": float(each), "count": 1} for each in range(8)]
    times = {"since_ms": scene.now_ms, "as_of_ms": scene.now_ms}
    quantiles = {"min": 0, "p10": 0, "p50": 3, "p90": 7, "p99": 7, "max": 7}
    assert scene.lately("n") == {
        "kind": "number",
        "masked": False,
        "rows": 8,
        "nulls": 0,
        **times,
        "quantiles": quantiles,
        "histogram": bins,
    }
    assert scene.lately("total")["quantiles"]["p50"] == 3.5
    assert scene.lately("many")["kind"] == "boolean"
    assert [each["count"] for each in scene.lately("many")["histogram"]] == [4, 4]
    nothing = {"quantiles": None, "histogram": None}
    assert scene.lately("latest") == {
        "kind": "text",
        "masked": False,
        "rows": 8,
        "nulls": 0,
        **times,
        **nothing,
    }
    assert scene.lately("most") == {
        "kind": "number",
        "masked": False,
        "rows": 8,
        "nulls": 8,
        **times,
        **nothing,
    }
    assert scene.answered.lately("s", "none") is None
    assert scene.answered.lately("other", "n") is None


def test_what_was_not_asked_for_or_is_warming_is_not_known(scene: Scene) -> None:
    slow = reply(dict.fromkeys(NAMES), "most", "many")
    scene.answer(reply({"n": 1}), slow, reply({}), problem(422, "no", []), None)
    scene.tick()
    assert scene.shares() == {"n": 0.5, "total": 1, "latest": 1}
    assert scene.lately("most")["rows"] == 0
    assert scene.lately("most")["as_of_ms"] is None


def test_a_metric_that_is_always_null_is_told_of_enough_answers(scene: Scene) -> None:
    def always() -> Sequence[str]:
        found = scene.answered.null_shares("s")
        assert found is not None
        return found["always"]

    while scene.lately("most")["rows"] < TOLD_MIN:
        scene.answer(*(whole(1, total=None) for _ in range(ROWS_MAX)))
        scene.tick()
        assert always() == (["total", "most"] if scene.lately("most")["rows"] >= TOLD_MIN else [])
    scene.answer(whole(1))
    scene.tick()
    assert always() == ["most"]


def test_what_is_noted_is_little_and_lies_evenly_among_many(scene: Scene) -> None:
    scene.answer(*(whole(each) for each in range(10_000)))
    scene.answer(whole(1))
    assert not scene.record.wants_answers
    scene.tick()
    found = scene.lately("n")
    assert found["rows"] == ROWS_MAX
    assert (found["quantiles"]["min"], found["quantiles"]["max"] > 9_000) == (0, True)
    scene.answer(whole(5))
    scene.tick()
    assert scene.lately("n")["rows"] == ROWS_MAX + 1


def test_the_last_values_are_kept_with_their_times(scene: Scene) -> None:
    """Those before them are forgotten, with the nulls among them."""
    begun_ms = scene.now_ms
    for second in range(KEPT_MAX // ROWS_MAX + 3):
        scene.answer(*(whole(second, total=None if second < 5 else "1.00") for _ in range(ROWS_MAX)))
        scene.tick()
    found = scene.lately("total")
    assert (found["rows"], found["nulls"]) == (KEPT_MAX, 2 * ROWS_MAX)
    assert scene.shares()["total"] == round(2 * ROWS_MAX / KEPT_MAX, 4)
    assert (found["since_ms"], found["as_of_ms"]) == (begun_ms + 4_000, scene.now_ms)
    assert scene.lately("n")["quantiles"]["min"] == 3
    scene.answer(whole(99))
    scene.tick()
    assert scene.lately("n")["rows"] == KEPT_MAX
    assert scene.lately("n")["since_ms"] == begun_ms + 4_000


def test_where_there_are_many_metrics_fewer_replies_are_looked_at(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answered_module, "VALUES_MAX", 20)
    scene.answer(*(whole(each) for each in range(ROWS_MAX)))
    scene.tick()
    assert scene.lately("n")["rows"] == 20 // len(NAMES)


@pytest.mark.parametrize(
    ("streams", "looks", "rows"),
    [
        # What one does not need, others have.
        (3, 1, [1, 1, 2]),
        (4, 2, [2, 2, 2, 2]),
        # A reply has more values than the share of a stream: each has its turn.
        (8, 1, [0, 0, 0, 0, 1, 1, 1, 1]),
        (8, 2, [1] * 8),
        (8, 5, [2, 2, 2, 2, 3, 3, 3, 3]),
    ],
)
def test_values_of_all_streams_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch, streams: int, looks: int, rows: list[int]
) -> None:
    monkeypatch.setattr(answered_module, "VALUES_MAX", 20)
    names = [f"s{number}" for number in range(streams)]
    text = "".join(
        DEFINITIONS.replace("FROM s", f"FROM {name}").replace("streams.s", f"streams.{name}")
        for name in names
    )
    entries = Catalog(evolution.missing(Catalog(), parse_definitions(text))).streams
    answered = Answered(lambda: entries, Masks(), lambda: NOW_MS)
    records = {name: StreamRecord() for name in names}
    for _ in range(looks):
        for record in records.values():
            note_answers(record, [whole(1)] * ROWS_MAX)
        answered.tick([(name, Way.HTTP, record) for name, record in records.items()])
        asyncio.run(answered.digest())
    found = [answered.lately(name, "n") for name in names]
    assert sorted(each["rows"] for each in found if each is not None) == rows


def test_replies_that_come_by_two_ways_share(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answered_module, "VALUES_MAX", 20)
    records = StreamRecord(), StreamRecord()
    for record in records:
        note_answers(record, [whole(1)] * 3)
    scene.answered.tick(list(zip("ss", Way, records)))
    asyncio.run(scene.answered.digest())
    assert scene.lately("n")["rows"] == 4


def test_a_stream_whose_mask_cannot_be_made_shows_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server goes on without it, and it is tried anew."""
    scene.changed()
    scene.answer(whole(1))
    with monkeypatch.context() as patched:
        patched.setattr(answered_module, "_kinds", lambda entry: 1 / 0)
        scene.tick()
        assert "a defect" in caplog.text
    assert scene.shares() == {}
    scene.answer(whole(1))
    scene.tick()
    assert scene.shares()["n"] == 0


def test_more_answers_than_are_wanted_are_left() -> None:
    """As when another thread noted some since the record was looked at."""
    record = StreamRecord()
    for _ in range(2):
        note_answers(record, [whole(1)] * ROWS_MAX)
    assert (len(record.noted), record.wants_answers) == (ROWS_MAX, False)


def test_what_is_dropped_is_forgotten(scene: Scene) -> None:
    def change(*changes: Any) -> None:
        for each in changes:
            scene.catalog.apply(each)
        scene.changed()

    scene.answer(whole(1))
    scene.tick()
    change(evolution.dropped_metric(scene.catalog, "s", "most"))
    assert "most" not in scene.shares()
    assert scene.answered.lately("s", "most") is None
    change(*evolution.new_metrics(scene.catalog, "s", "SELECT min(x) AS most FROM s OVER INFINITE"))
    assert "most" not in scene.shares()
    assert scene.lately("most")["rows"] == 0
    scene.answer(whole(2, most=2.5))
    scene.tick()
    assert scene.shares()["most"] == 0
    assert scene.lately("n")["rows"] == 2
    # A reply of before the drop of a metric names it still.
    scene.answer(whole(2))
    change(evolution.dropped_metric(scene.catalog, "s", "most"))
    scene.tick()
    assert "most" not in scene.shares()
    scene.copied = {}
    assert scene.answered.null_shares("s") is None
    scene.answer(whole(1))
    scene.tick()
    scene.changed()
    assert scene.answered.null_shares("s") is None


def test_a_value_of_another_type_under_the_same_name(scene: Scene) -> None:
    """As of a reply that was given before a metric was dropped and added anew. The others of it count."""
    scene.answer(whole(1, most="a name"))
    scene.tick()
    assert "most" not in scene.shares()
    assert scene.shares()["n"] == 0


def test_a_defect_ends_no_server(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(answered_module, "_columns", lambda sample: iter([("n", [object()])]))
    scene.answer(whole(1))
    scene.tick()
    assert "a defect" in caplog.text


def test_numbers_that_json_does_not_have(scene: Scene) -> None:
    scene.answer(whole(2**100, most=float("inf")), whole(1, most=1.0), whole(1, most=float("nan")))
    scene.tick()
    found = scene.lately("most")
    assert (found["rows"], found["nulls"], found["quantiles"]["max"]) == (3, 1, 1.0)
    assert scene.lately("n")["quantiles"]["max"] == 2.0**100


def test_a_record_in_place_of_another_one_begins_anew(scene: Scene) -> None:
    scene.answer(whole(1))
    scene.record = StreamRecord()
    scene.tick()
    assert scene.shares() == {}
    scene.answer(whole(1))
    scene.tick()
    assert scene.shares()["n"] == 0


def test_of_masked_metrics_nothing_is_kept_or_shown() -> None:
    scene = Scene("s.name", "s.price")
    scene.answer(*(whole(each) for each in range(8)))
    scene.tick()
    assert scene.shares() == {"n": 0, "most": 1, "many": 0}
    for name in ("total", "latest"):
        found = scene.lately(name)
        assert (found.pop("masked"), found.pop("kind")) == (True, "number" if name == "total" else "text")
        assert not any(found.values())
    assert not scene.lately("n")["masked"]
    # One that comes later is masked from the beginning.
    for change in evolution.new_metrics(
        scene.catalog, "s", "SELECT min(price) AS least FROM s OVER INFINITE"
    ):
        scene.catalog.apply(change)
    scene.changed()
    scene.answer(whole(1, least="1.50"))
    scene.tick()
    assert "least" not in scene.shares()
    assert scene.lately("least")["masked"]
