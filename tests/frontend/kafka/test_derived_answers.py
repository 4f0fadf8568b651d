"""Which derived metrics a reply names, and of what they are made, where tasks have come to different changes.

A model beside it replays the changes up to the place of each task. Bugs that are planted have to be caught by it.
"""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from frontend.exchange import pending as pending_module
from frontend.exchange import timeline as timeline_module
from frontend.exchange.pending import Homes, PendingRequest
from frontend.exchange.pending_table import ROW_BITS, PendingTable
from frontend.exchange.streams import StreamIntake
from frontend.exchange.timeline import Timeline
from frontend.problems import Problem
from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import AddDerived, Change, DropMetric
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.registrations import Registered
from railgun.ingest.replies import Reply
from railgun.registry import evolution
from railgun.wire.reply import ReplyBatch, ReplyMetric, ReplySource, Shape
from tests.frontend.kafka.test_gathered import record

STREAM = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["merchant", "card"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
x = "long"
[[metrics]]
sql = "SELECT count(*) AS m FROM payments GROUP BY merchant OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS c FROM payments GROUP BY card OVER INFINITE"
"""
HOMES = {"merchant": "m", "card": "c"}
SOURCES = {
    home: ReplySource("payments", home, 0, (ReplyMetric(name, "long", 0, 0, Shape.WORD),))
    for home, name in HOMES.items()
}
# What each reads, and how it is computed of (m, c, x, y), any of which may be None.
Values = dict[str, int | None]
OF_ADDED = "COALESCE(y, -1) + c"
FORMS: dict[str, tuple[set[str], Callable[[Values], int | None]]] = {
    "m + x": ({"m"}, lambda of: _sum(of["m"], of["x"])),
    "c - x": ({"c"}, lambda of: _sum(of["c"], None if of["x"] is None else -of["x"])),
    "m + c": ({"m", "c"}, lambda of: _sum(of["m"], of["c"])),
    "x + x": (set(), lambda of: _sum(of["x"], of["x"])),
    OF_ADDED: ({"c"}, lambda of: _sum(-1 if of["y"] is None else of["y"], of["c"])),
}
NAMES = ("d0", "d1", "d2")
FIRST = 5
"""The place of the first change after the stream, its metrics, and the field y."""


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


@dataclasses.dataclass(frozen=True)
class Row:
    """An event, whether it was sent to each partitioner, and what that has answered by now.

    places: of the tasks that have answered.  schemas: of their records.
    """

    sent: frozenset[str]
    places: dict[str, int]
    schemas: dict[str, int]
    x: int | None
    y: int | None


def changes_of(drawn: list[tuple[str, str | None]]) -> list[Change]:
    """A DERIVE of a form under a name, or, of None, a drop; what cannot be done is left out."""
    made: list[Change] = []
    there: dict[str, int] = {}
    for name, form in drawn:
        place = FIRST + len(made)
        if form is None and name in there:
            made.append(DropMetric(place, "payments", name, there.pop(name)))
        elif form is not None and name not in there:
            made.append(AddDerived(place, "payments", name, f"DERIVE {form} AS {name} FROM payments"))
            there[name] = place
    return made


def catalog_of(changes: list[Change]) -> Catalog:
    catalog = Catalog(evolution.missing(Catalog(), parse_definitions(STREAM)))
    catalog.apply(evolution.added_field(catalog, "payments", "y", "long"))
    for change in changes:
        catalog.apply(change)
    return catalog


def in_force(changes: list[Change], place: int) -> dict[str, tuple[int, str]]:
    """By name, the place of the add and the form, for a task that has come to a place."""
    found: dict[str, tuple[int, str]] = {}
    for change in changes:
        if change.place <= place and isinstance(change, AddDerived):
            found[change.name] = change.place, change.sql.removeprefix("DERIVE ").partition(" AS ")[0]
        elif change.place <= place and isinstance(change, DropMetric):
            del found[change.name]
    return found


def expected(row: Row, changes: list[Change], number: int, last_place: int) -> dict[str, Any]:
    """The metrics of a reply to an event that some partitioners have answered, or that none was sent."""
    missing = row.sent - row.places.keys()
    seen = [in_force(changes, place) for place in (row.places.values() if row.sent else [last_place])]
    values: Values = {HOMES[home]: -(5 * number + 1) if home in row.places else None for home in HOMES}
    values["x"] = row.x
    values["y"] = row.y if all(version == 2 for version in row.schemas.values()) else None
    shown = {HOMES[home]: values[HOMES[home]] for home in HOMES if home not in missing}
    for name, (added, form) in sorted(seen[0].items(), key=lambda each: each[1][0]):
        operands, compute = FORMS[form]
        if operands & {HOMES[home] for home in missing}:
            continue
        if all(other.get(name) == (added, form) for other in seen):
            shown[name] = compute(values)
    return shown


def answered(rows: list[Row], changes: list[Change]) -> list[Reply | Problem]:
    """What the front-end says of the events."""
    catalog = catalog_of(changes)
    entry = catalog.streams["payments"]
    texts = [
        json.dumps(
            {"tx_id": f"t{number}", "ts": 1, "x": row.x, "y": row.y, **dict.fromkeys(row.sent, "k")}
        ).encode()
        for number, row in enumerate(rows)
    ]
    accepted = StreamIntake(entry).take(texts, 1_000)
    timeline = Timeline(entry, catalog.last_place)
    pending = PendingRequest(
        1, "payments", accepted, Homes.of(entry, timeline, catalog.last_place), lambda _: None, 50
    )
    for home, source in SOURCES.items():
        for number, row in enumerate(rows):
            if home in row.places:
                said = batch(source, 5 * number + 1, row.places[home], row.schemas[home])
                assert pending.gather(said, 0, 1, np.array([number], np.int64)) == 1
    return pending.answers(None, takes_partial=True)


def batch(source: ReplySource, number: int, place: int, schema: int) -> ReplyBatch:
    return dataclasses.replace(record(source, [number]), place=place, schema=np.array([schema]))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Row], list[Change]]:
    drawn = draw(
        st.lists(
            st.tuples(st.sampled_from(NAMES), st.none() | st.sampled_from([*FORMS, OF_ADDED, OF_ADDED])),
            max_size=9,
        )
    )
    changes = changes_of(drawn)
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        sent = draw(st.sets(st.sampled_from([*HOMES])))
        answers = draw(st.sets(st.sampled_from([*HOMES]))) & sent
        rows.append(
            Row(
                frozenset(sent),
                {home: draw(st.integers(FIRST - 1, FIRST - 1 + len(changes))) for home in sorted(answers)},
                {home: draw(st.integers(1, 2)) for home in sorted(answers)},
                draw(st.none() | st.integers(-5, 5)),
                draw(st.none() | st.integers(3, 9)),
            )
        )
    return rows, changes


def check(rows: list[Row], changes: list[Change]) -> None:
    for number, (row, said) in enumerate(zip(rows, answered(rows, changes))):
        if row.sent and not row.places:
            assert isinstance(said, Problem)
            continue
        assert isinstance(said, Reply)
        shown = json.loads(msgspec.json.encode(said))["metrics"]
        wanted = expected(row, changes, number, FIRST - 1 + len(changes))
        assert shown == wanted
        assert list(shown) == list(wanted)


@given(cases())
@settings(max_examples=100)
def test_a_reply_names_what_is_in_force_in_every_task_that_answered(
    case: tuple[list[Row], list[Change]],
) -> None:
    check(*case)


def in_force_in_some_task(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timeline_module, "all", any, raising=False)


def without_the_drops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Registered, "is_in_force", lambda self, place: self.added <= place)


def with_the_fields_of_other_events(patch: pytest.MonkeyPatch) -> None:
    some = pending_module._some

    def first_ones(accepted: Any, rows: Any, *, with_events: bool) -> Any:
        chosen = some(accepted, rows, with_events=with_events)
        return chosen if rows is None else dataclasses.replace(chosen, events=accepted.events[: len(rows)])

    patch.setattr(pending_module, "_some", first_ones)


def with_fields_that_were_not_recorded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingRequest, "_recorded", lambda self, rows: None)


def of_partitioners_that_are_missing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timeline_module, "_lacks", lambda *_: False)


@pytest.mark.parametrize(
    "plant",
    [
        in_force_in_some_task,
        without_the_drops,
        with_the_fields_of_other_events,
        with_fields_that_were_not_recorded,
        of_partitioners_that_are_missing,
    ],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_bug_is_caught(plant: Callable[[pytest.MonkeyPatch], None]) -> None:
    @given(cases())
    @settings(max_examples=1_000, database=None, phases=[Phase.generate], derandomize=True)
    def bugged(case: tuple[list[Row], list[Change]]) -> None:
        check(*case)

    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(AssertionError):
            bugged()


def test_a_reply_of_a_place_that_was_not_read_is_held_until_it_is() -> None:
    changes = changes_of([("d0", "m + c"), ("d0", None), ("d0", "m + x")])
    before, after = catalog_of(changes[:1]), catalog_of(changes)
    entry = before.streams["payments"]
    timeline = Timeline(entry, before.last_place)
    accepted = StreamIntake(entry).take([b'{"tx_id": "t", "ts": 1, "x": 4, "merchant": "k"}'], 1_000)
    table = PendingTable(0, 10, 1 << 20)
    homes = Homes.of(entry, timeline, before.last_place)
    pending = PendingRequest(1, "payments", accepted, homes, lambda _: None, 60_000)
    table.add(pending)
    said = batch(SOURCES["merchant"], 1, after.last_place, 2)
    said = dataclasses.replace(said, sequence=np.array([1 << ROW_BITS]))
    assert table.gather(said) == []
    assert table.events == 1
    (answer,) = pending.answers()
    assert isinstance(answer, Problem)
    assert table.take_held() == []
    timeline.update(after.streams["payments"], after.last_place)
    assert table.take_held() == [pending]
    assert table.events == 0
    (reply,) = pending.answers()
    assert isinstance(reply, Reply)
    assert json.loads(msgspec.json.encode(reply))["metrics"] == {"m": -1, "c": None, "d0": 3}
