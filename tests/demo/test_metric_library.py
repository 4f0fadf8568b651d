"""The metric library: page and file have the same queries, and its thresholds separate fraud from ordinary payments."""

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from railgun import Engine
from railgun.catalog.definitions import load_definitions
from railgun.demo.payments import (
    ACCOUNT_TAKEOVER,
    CARD_TESTING,
    COMPROMISED_MERCHANT,
    PATTERNS,
    Payments,
    payments,
)
from railgun.demo.payments_run import SHOWN, STARTS, Shown, starts_query
from tests.forked import ROOT

_FILE = ROOT / "config" / "examples" / "payments.toml"
_PAGE = (ROOT / "docs" / "metric-library.md").read_text(encoding="utf-8")
_LIBRARY, _RULES = _PAGE.split("\n## Rules to begin with\n")
_ENTRIES = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", _LIBRARY, re.MULTILINE | re.DOTALL))
_PARTS = ("Catches", "Read it", "Start at")
_STARTS = dict(zip(_ENTRIES, re.findall(r"^- \*\*Start at\*\*: `(.+)`$", _LIBRARY, re.MULTILINE)))
_RULE_OF_PATTERN = {
    CARD_TESTING: "is_card_testing",
    ACCOUNT_TAKEOVER: "is_account_takeover",
    COMPROMISED_MERCHANT: "is_stolen_cards",
}
_CAUGHT_MIN, _FLAGGED_MAX, _FLAGGED_BY_START_MAX = 0.9, 0.01, 0.02


def _queries(text: str) -> list[str]:
    """The queries of a page, on one line each."""
    blocks = re.findall(r"(?:^ {4}.*\n)+", text, re.MULTILINE)
    return [" ".join(block.split()) for block in blocks if block.split()[0] in ("SELECT", "DERIVE")]


# --- page and file ---------------------------------------------------------------------------------


def test_page_and_file_have_the_same_queries() -> None:
    entries = tomllib.loads(_FILE.read_text(encoding="utf-8"))["metrics"]
    assert sorted(_queries(_LIBRARY)) == sorted(" ".join(entry["sql"].split()) for entry in entries)


def test_there_are_twenty_and_what_they_read() -> None:
    found = load_definitions(_FILE)
    names = {each.name for each in (*found.metrics, *found.derived)}
    operands = {name for each in found.derived for name in each.operands}
    assert len(_ENTRIES) == 20
    assert set(_ENTRIES) <= names
    assert names - set(_ENTRIES) <= operands


@pytest.mark.parametrize("name", _ENTRIES)
def test_an_entry_makes_its_metric_and_says_how_it_is_read(name: str) -> None:
    assert any(f" AS {name} " in query for query in _queries(_ENTRIES[name]))
    assert re.findall(r"^- \*\*(.+?)\*\*: \S", _ENTRIES[name], re.MULTILINE) == list(_PARTS)
    assert name in _STARTS[name]


def test_page_and_demo_have_the_same_starts() -> None:
    assert STARTS == _STARTS


@pytest.mark.parametrize("shown", SHOWN, ids=lambda each: each.metric)
def test_the_demo_shows_where_to_start(shown: Shown) -> None:
    number = float(_STARTS[shown.metric].removeprefix(f"{shown.metric} >= "))
    assert number == shown.start


# --- what they separate ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scored:
    """Payments and the metrics of their answers."""

    made: Payments
    metrics: list[dict[str, Any]]

    def share(self, condition: str, pattern: str) -> float:
        """The part of a pattern's payments, "" being the ordinary, for which a condition is true."""
        labels = [self.made.labels.get(event["tx_id"], "") for event in self.made.events]
        true = sum(each[condition] is True for each, label in zip(self.metrics, labels) if label == pattern)
        return true / labels.count(pattern)


@pytest.fixture(scope="module", params=[1, 2, 3], ids="seed {}".format)
def scored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scored:
    made = payments(request.param)
    with Engine(tmp_path_factory.mktemp("library"), durability="os") as engine:
        engine.apply(_FILE)
        engine.add_metrics("payments", starts_query())
        for rules in _queries(_RULES):
            engine.add_metrics("payments", rules)
        replies = engine.score_many("payments", made.events)
    assert not any({"late", "duplicate", "warming", "partial"} & set(reply) for reply in replies)
    return Scored(made, [reply["metrics"] for reply in replies])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_rule_catches_its_pattern_and_leaves_ordinary_payments(scored: Scored, pattern: str) -> None:
    rule = _RULE_OF_PATTERN[pattern]
    assert scored.share(rule, pattern) >= _CAUGHT_MIN
    assert scored.share(rule, "") <= _FLAGGED_MAX


@pytest.mark.parametrize("name", _STARTS)
def test_a_start_flags_few_ordinary_payments(scored: Scored, name: str) -> None:
    assert scored.share(f"start_{name}", "") <= _FLAGGED_BY_START_MAX


def test_a_takeover_is_at_an_unusual_hour(scored: Scored) -> None:
    night = "card_unusual_night"
    assert scored.share(night, ACCOUNT_TAKEOVER) > 20 * scored.share(night, "")


def test_a_rule_does_not_flag_whatever_is_fraud(scored: Scored) -> None:
    assert scored.share("is_card_testing", ACCOUNT_TAKEOVER) == 0
    assert scored.share("is_account_takeover", CARD_TESTING) < 0.1
    assert scored.share("is_stolen_cards", ACCOUNT_TAKEOVER) < 0.1


@pytest.mark.parametrize("name", _ENTRIES)
def test_a_metric_tells_payments_apart(scored: Scored, name: str) -> None:
    counts = Counter(each[name] for each in scored.metrics)
    assert len(counts) > 1
    assert max(counts.values()) < 0.99 * len(scored.metrics)


def test_a_payment_that_is_sent_again_is_compared_with_itself(tmp_path: Path) -> None:
    """Which is why the page keeps such replies from rules."""
    event = next(each for each in payments(1).events if each["declined"] is False)
    with Engine(tmp_path / "data", durability="os") as engine:
        engine.apply(_FILE)
        first, again = engine.score("payments", event), engine.score("payments", event)
    names = ("card_idle_s", "card_times_usual", "card_times_most")
    assert "duplicate" not in first
    assert [first["metrics"][name] for name in names] == [None, None, None]
    assert "card" in again["duplicate"]
    assert [again["metrics"][name] for name in names] == [0, 1, 1]
