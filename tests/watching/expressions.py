"""The rules and dashboards of `config/`: their expressions, and the selectors in these."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
RULES = ROOT / "config" / "alerts.yml"
DASHBOARDS = (ROOT / "config" / "grafana" / "on-call.json", ROOT / "config" / "grafana" / "capacity.json")

_LABELS = re.compile(r"\b(?:by|on|group_left)\s*\([^)]*\)|\[[^\]]*\]")
_WORD = re.compile(r"\b([a-z_]\w*)\b(\{[^}]*\})?")
# What stands in an expression beside the names of series.
_LANGUAGE = {
    *(
        "sum",
        "max",
        "min",
        "count",
        "topk",
        "rate",
        "increase",
        "delta",
        "deriv",
        "abs",
        "time",
        "and",
        "or",
        "unless",
    ),
    *("histogram_quantile", "predict_linear"),
}


@dataclass(frozen=True)
class Alert:
    """A rule. runbook: the page and the paragraph that say what to do."""

    name: str
    expr: str
    severity: str
    runbook: str


def alerts() -> list[Alert]:
    """Return the rules, in order."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [
        Alert(each["alert"], each["expr"], each["labels"]["severity"], each["annotations"]["runbook"])
        for group in groups
        for each in group["rules"]
    ]


def panels(dashboard: Path) -> list[dict[str, Any]]:
    """Return a dashboard's panels, rows too."""
    found: list[dict[str, Any]] = json.loads(dashboard.read_text(encoding="utf-8"))["panels"]
    return found


def shown(dashboard: Path) -> list[str]:
    """Return a dashboard's expressions, with a minute where Grafana would put its own range."""
    return [
        target["expr"].replace("$__rate_interval", "1m")
        for panel in panels(dashboard)
        for target in panel.get("targets", [])
    ]


def selectors(expr: str) -> set[str]:
    """Return the selectors of series: each word that is no part of the language, with its matchers."""
    found = _WORD.finditer(_LABELS.sub(" ", expr))
    return {f"{each[1]}{each[2] or ''}" for each in found if each[1] not in _LANGUAGE}
