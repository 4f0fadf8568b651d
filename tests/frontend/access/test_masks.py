"""What a mask covers: a table with every way by which a masked value could be told."""

import logging
from typing import Any

import pytest

from frontend.access.masks import UNMASKED, Mask, Masks
from railgun.catalog.catalog import Catalog, StreamEntry, missing_changes
from railgun.catalog.changes import DropMetric
from railgun.catalog.definitions import parse_definitions
from railgun.registry.evolution import changed_stream

STREAM = """
[streams.payments]
time = "ts"
id = "pid"
partitioners = ["card", "*"]
[streams.payments.fields]
pid = "string"
ts = "timestamp"
card = "string"
amount = "double"
shop = "string"
pan = { type = "string", from = "card" }
bin = { as = "SUBSTR(card, 1, 6)" }
deep = { as = "bin || '-'" }
place = { as = "shop || pid" }
"""
OTHER = """
[streams.other]
[streams.other.fields]
card = "string"
[[metrics]]
sql = "SELECT count_distinct(card) AS cards FROM other OVER INFINITE"
"""


def entry_of(*statements: str, stream: str = STREAM, name: str = "payments") -> StreamEntry:
    catalog = Catalog()
    text = stream + "".join(f'[[metrics]]\nsql = """{each}"""\n' for each in statements)
    for change in missing_changes(catalog, parse_definitions(text))[0]:
        catalog.apply(change)
    return catalog.entry(name)


def masked(entry: StreamEntry, *fields: str) -> Mask:
    return Masks(f"payments.{each}" for each in fields).of(entry)


FROM = "FROM payments"


@pytest.mark.parametrize(
    ("statements", "hidden", "shown"),
    [
        ([f"SELECT last(card) AS m {FROM} OVER INFINITE"], {"m"}, set()),
        ([f"SELECT count_distinct(card || 'x') AS m {FROM} OVER INFINITE"], {"m"}, set()),
        ([f"SELECT count(*) AS m {FROM} GROUP BY card OVER INFINITE"], {"m"}, set()),
        ([f"SELECT sum(amount) AS m {FROM} WHERE card = '1' OVER INFINITE"], {"m"}, set()),
        ([f"SELECT sum(amount) FILTER (WHERE card IS NULL) AS m {FROM} OVER INFINITE"], {"m"}, set()),
        ([f"SELECT last(bin) AS m {FROM} OVER INFINITE"], {"m"}, set()),
        ([f"SELECT count(*) AS m {FROM} WHERE deep LIKE '4%' OVER INFINITE"], {"m"}, set()),
        ([f"SELECT last(pan) AS m {FROM} OVER INFINITE"], {"m"}, set()),
        ([f"SELECT sum(amount) AS m, last(shop) AS l {FROM} GROUP BY shop OVER INFINITE"], set(), {"m", "l"}),
        ([f"DERIVE card || '!' AS m {FROM}"], {"m"}, set()),
        ([f"DERIVE LENGTH(deep) AS m {FROM}"], {"m"}, set()),
        ([f"DERIVE amount + 1.0 AS m {FROM}"], set(), {"m"}),
        (
            [
                f"SELECT count(*) AS n {FROM} GROUP BY card OVER INFINITE",
                f"SELECT count(*) AS all_n {FROM} OVER INFINITE",
                f"DERIVE n / all_n AS rate, all_n + 1 AS more {FROM}",
                f"DERIVE rate > 0.5 AS unusual, more * 2 AS most {FROM}",
            ],
            {"n", "rate", "unusual"},
            {"all_n", "more", "most"},
        ),
    ],
)
def test_metrics_that_would_tell_a_masked_field(
    statements: list[str], hidden: set[str], shown: set[str]
) -> None:
    entry = entry_of(*statements)
    assert masked(entry, "card").metrics == hidden
    assert set(entry.names) - hidden == shown


@pytest.mark.parametrize(
    ("named", "fields"),
    [
        # What is computed of it, also through another computed field, and what is read at the same place.
        ("card", {"card", "pan", "bin", "deep"}),
        ("pan", {"card", "pan", "bin", "deep"}),
        # What it is computed of, and what else is computed of that.
        ("deep", {"card", "pan", "bin", "deep"}),
        ("shop", {"shop", "place"}),
        ("place", {"shop", "pid", "place"}),
        ("amount", {"amount"}),
        ("none", set()),
    ],
)
def test_fields_that_would_tell_a_masked_one(named: str, fields: set[str]) -> None:
    found = masked(entry_of(), named)
    assert found.fields == fields
    assert found.covers_id == ("pid" in fields)
    assert not found.covers_time


def test_the_time_of_events_may_be_masked() -> None:
    assert masked(entry_of(), "ts").covers_time
    assert masked(entry_of(), "ts", "pid").covers_id


def test_a_metric_of_a_computed_field_says_the_expression_instead() -> None:
    entry = entry_of(f"SELECT last(SUBSTR(card, 1, 6)) AS m {FROM} OVER INFINITE")
    assert masked(entry, "bin").metrics == {"m"}


def test_texts_may_quote_what_is_no_field_too() -> None:
    """So a stream with a mask shows none, whatever the mask names."""
    assert not masked(entry_of(), "amount").shows_texts
    assert not masked(entry_of(), "none").shows_texts
    assert masked(entry_of()).shows_texts


def test_other_streams_are_not_masked() -> None:
    other = entry_of(stream=OTHER, name="other")
    assert Masks(["payments.card"]).of(other) == UNMASKED
    assert Masks(["payments.card", "other.card"]).of(other).metrics == {"cards"}


def test_a_metric_that_comes_later_is_covered_and_one_that_comes_anew_is_not() -> None:
    catalog, masks = Catalog(), Masks(["payments.card"])

    def define(*statements: str) -> frozenset[str]:
        text = STREAM + "".join(f'[[metrics]]\nsql = """{each}"""\n' for each in statements)
        for change in missing_changes(catalog, parse_definitions(text))[0]:
            catalog.apply(change)
        return masks.of(catalog.entry("payments")).metrics

    assert define() == set()
    assert define(f"SELECT last(card) AS m {FROM} OVER INFINITE") == {"m"}
    (registered,) = catalog.entry("payments").registered
    catalog.apply(DropMetric(catalog.last_place + 1, "payments", "m", registered.added))
    assert define(f"SELECT last(shop) AS m {FROM} OVER INFINITE") == set()


def test_both_masks_cover_what_either_does() -> None:
    one = Mask(frozenset("a"), frozenset("m"), covers_id=True)
    other = Mask(frozenset("b"), frozenset("n"), covers_time=True, shows_texts=False)
    both = Mask(frozenset("ab"), frozenset("mn"), covers_id=True, covers_time=True, shows_texts=False)
    assert one | other == both
    assert one | UNMASKED == one


def test_a_misspelt_field_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    masks = Masks(["payments.crad", "payments.card"])
    masks.of(entry_of())
    masks.of(entry_of(f"SELECT count(*) AS n {FROM} OVER INFINITE"))
    assert [each.getMessage() for each in caplog.records] == [
        "console.masks has payments.crad, but the stream has no such field"
    ]


def changed(catalog: Catalog, **fields: Any) -> StreamEntry:
    for change in changed_stream(catalog, "s", {"fields": fields}):
        catalog.apply(change)
    return catalog.entry("s")


MOVING = """
[streams.s]
[streams.s.fields]
card = { type = "string", from = "card.no" }
name = { type = "string", from = "card.no" }
other = { type = "string", from = "holder.id" }
bin = { as = "SUBSTR(card, 1, 6)" }
[[metrics]]
sql = "SELECT last(name) AS latest, last(other) AS others FROM s OVER INFINITE"
"""


def moving() -> Catalog:
    catalog = Catalog()
    for change in missing_changes(catalog, parse_definitions(MOVING))[0]:
        catalog.apply(change)
    return catalog


def test_a_field_that_was_read_at_a_masked_place_stays_masked() -> None:
    """The backlog is read there still, and windows hold what was."""
    catalog, masks = moving(), Masks(["s.card"])
    assert masks.of(catalog.entry("s")).fields == {"card", "name", "bin"}
    found = masks.of(changed(catalog, name={"type": "string", "from": "holder.name"}))
    assert (found.fields, found.metrics) == ({"card", "name", "bin"}, {"latest"})
    # So does one that comes to where the masked field was, and one that was there between two looks.
    changed(catalog, card={"type": "string", "from": "pan"})
    assert masks.of(changed(catalog, more={"type": "string", "from": "pan"})).fields >= {"more", "name"}
    before = masks.of(catalog.entry("s"))
    assert "other" not in before.fields
    changed(catalog, other={"type": "string", "from": "pan"})
    found = masks.of(changed(catalog, other={"type": "string", "from": "holder.id"}))
    assert (found.fields, found.metrics) == (before.fields | {"other"}, {"latest", "others"})


def test_a_masked_computed_field_that_is_dropped_masks_what_it_was_computed_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    catalog, masks = moving(), Masks(["s.bin"])
    fields = masks.of(catalog.entry("s")).fields
    assert masks.of(changed(catalog, bin=None)).fields == fields - {"bin"} == {"card", "name"}
    # Also if a field of its name comes that is of something else.
    assert masks.of(changed(catalog, bin={"as": "other || '!'"})).fields == fields | {"other"}
    assert masks.of(changed(catalog, bin=None)).fields == {"card", "name", "other"}
    assert not caplog.records
