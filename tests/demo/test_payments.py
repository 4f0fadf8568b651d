"""The made-up payments are those of their seed, fit the stream, and have the patterns that their labels name."""

import re
import tomllib
from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from railgun.demo.payments import (
    ACCOUNT_TAKEOVER,
    CARD_TESTING,
    COMPROMISED_MERCHANT,
    PATTERNS,
    Payments,
    payments,
)
from tests.forked import ROOT

Event = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Payments:
    return payments()


def test_they_are_those_of_the_seed() -> None:
    assert payments(1, 100, 35) == payments(1, 100, 35) != payments(2, 100, 35)


def test_they_fit_the_stream_and_do_not_say_what_they_are(made: Payments) -> None:
    file = ROOT / "config" / "examples" / "payments.toml"
    fields = tomllib.loads(file.read_text(encoding="utf-8"))["streams"]["payments"]["fields"]
    assert all(set(event) == set(fields) for event in made.events)
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(made.events))
    assert len({event["tx_id"] for event in made.events}) == len(made.events)
    for name, form in (("card", "c[0-9a-f]{10}"), ("device", "d[0-9a-f]{10}|None"), ("merchant", r"m\d{3}")):
        assert all(re.fullmatch(form, str(event[name])) for event in made.events)


def test_most_are_ordinary(made: Payments) -> None:
    assert set(made.labels.values()) == set(PATTERNS)
    assert 0 < len(made.labels) < 0.1 * len(made.events)


def test_card_testing_is_many_small_amounts_of_one_bin_at_one_merchant(made: Payments) -> None:
    bursts = _grouped(_of(made, CARD_TESTING), "merchant", "bin")
    assert all(len(burst) >= 40 for burst in bursts)
    assert all(float(event["amount"]) <= 2 for burst in bursts for event in burst)
    assert {len({event["card"] for event in burst}) == 1 for burst in bursts} == {True, False}
    assert _declined_share(_of(made, CARD_TESTING)) > 0.5


def test_account_takeover_is_at_night_on_a_new_device_far_above_the_mean(made: Payments) -> None:
    own = _grouped([event for event in made.events if event["tx_id"] not in made.labels], "card")
    mean = {
        card[0]["card"]: sum(float(event["amount"]) for event in card) / len(card)
        for card in own
        if len(card) >= 20
    }
    devices = {(event["card"], event["device"]) for card in own for event in card}
    taken = _of(made, ACCOUNT_TAKEOVER)
    assert all(_hour(event) < 6 for event in taken)
    assert all((event["card"], event["device"]) not in devices for event in taken)
    above = [float(event["amount"]) > 3 * mean[event["card"]] for event in taken if event["card"] in mean]
    assert sum(above) > 0.9 * len(above) > 0


def test_stolen_cards_had_all_paid_at_the_breached_merchant(made: Payments) -> None:
    first_there: dict[str, int] = {}
    for event in made.events:
        if event["merchant"] == made.breached:
            first_there.setdefault(event["card"], event["ts"])
    used = _of(made, COMPROMISED_MERCHANT)
    assert {event["card"] for event in used} < set(first_there)
    assert all(first_there[event["card"]] < event["ts"] for event in used)
    assert made.breached not in {event["merchant"] for event in used}


@pytest.mark.parametrize("asked", [{"cards": 99}, {"days": 34}])
def test_too_few_are_refused(asked: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 100 and 35 are needed"):
        payments(**asked)


@pytest.mark.parametrize("asked", [{"cards": 100}, {"days": 35}])
def test_the_least_has_every_pattern(asked: dict[str, int]) -> None:
    assert set(payments(**asked).labels.values()) == set(PATTERNS)


def _of(made: Payments, pattern: str) -> list[Event]:
    return [event for event in made.events if made.labels.get(event["tx_id"]) == pattern]


def _grouped(events: list[Event], *fields: str) -> list[list[Event]]:
    groups: defaultdict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in events:
        groups[tuple(event[name] for name in fields)].append(event)
    return list(groups.values())


def _declined_share(events: list[Event]) -> float:
    return sum(event["declined"] for event in events) / len(events)


def _hour(event: Event) -> int:
    return datetime.fromtimestamp(event["ts"] / 1000, UTC).astimezone(ZoneInfo("Europe/Lisbon")).hour
