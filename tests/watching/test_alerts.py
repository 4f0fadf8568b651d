"""Every alert fires on figures that are wrong, is silent on good ones, and leads to what is to be done."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from railgun.telemetry.families import FAMILIES, FamilyKind
from tests.tidy.doc_rules import anchors
from tests.watching.expressions import DASHBOARDS, ROOT, RULES, alerts, panels, selectors, shown
from tests.watching.prometheus import program

CASES = Path(__file__).with_name("alerts_test.yml")
TELEMETRY = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(Railgun\w+)` \| .* \| \[[^\]]+\]\(([^)]+)\) \|$", re.MULTILINE)
EXPRESSIONS = [*(each.expr for each in alerts()), *(expr for board in DASHBOARDS for expr in shown(board))]


def _promtool(*words: str | Path) -> str:
    done = subprocess.run([program("promtool"), *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rules_and_configuration_are_ones_that_prometheus_takes() -> None:
    _promtool("check", "rules", RULES)
    _promtool("check", "config", ROOT / "config" / "prometheus.yml")


def test_alerts_fire_when_something_is_wrong_and_only_then() -> None:
    _promtool("test", "rules", CASES)


def test_each_alert_is_seen_firing_and_silent() -> None:
    fires, silent = set[str](), set[str]()
    for group in yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]:
        for case in group["alert_rule_test"]:
            (fires if case.get("exp_alerts") else silent).add(case["alertname"])
    names = {each.name for each in alerts()}
    assert (fires, silent) == (names, names)


def test_each_alert_names_a_paragraph_that_is_there() -> None:
    for each in alerts():
        page, _, anchor = each.runbook.partition("#")
        assert page == "docs/operations.md"
        assert anchor in anchors((ROOT / page).read_text(encoding="utf-8")), each.name
        assert each.severity in ("page", "ticket")


def test_the_page_lists_the_alerts_and_where_each_leads() -> None:
    assert ROW.findall(TELEMETRY) == [(each.name, each.runbook.removeprefix("docs/")) for each in alerts()]


def test_expressions_name_metrics_and_labels_that_there_are() -> None:
    labels = {each.name: set(each.labels) for each in FAMILIES}
    for each in [each for each in FAMILIES if each.kind is FamilyKind.HISTOGRAM]:
        labels |= {f"{each.name}{part}": {*each.labels, "le"} for part in ("_bucket", "_sum", "_count")}
    for expr in EXPRESSIONS:
        found = selectors(expr)
        assert found
        for name, _, matchers in (each.partition("{") for each in found):
            if name.startswith("railgun_"):
                assert set(re.findall(r"(\w+)[=!~]", matchers)) <= {*labels[name], "unit"}, expr


def test_panels_have_places_of_their_own() -> None:
    for board in DASHBOARDS:
        taken = set[tuple[int, int]]()
        for panel in panels(board):
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            assert place["x"] + place["w"] <= 24
            taken |= cells
        assert len({panel["id"] for panel in panels(board)}) == len(panels(board))


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ('up{job=~"railgun.*"} == 0', {'up{job=~"railgun.*"}'}),
        ("sum by (job, le) (rate(a_total[5m])) / on (job) group_left () b{x!=\"y\"} > 2e9", {"a_total", 'b{x!="y"}'}),
        ("predict_linear(a[6h], 86400) < 0 and misspelt(b)", {"a", "misspelt", "b"}),
    ],
)  # fmt: skip
def test_selectors_are_found(expr: str, expected: set[str]) -> None:
    assert selectors(expr) == expected
