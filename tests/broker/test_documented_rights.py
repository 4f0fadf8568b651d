"""docs/kafka.md lists the rights that the script grants, and no others."""

import re
from pathlib import Path

import pytest

from tests.broker.secured_broker import Right, rights_of
from tests.forked import ROOT

_TOPICS = ["--input", "prod.payments", "payments", "--output", "prod.scored", "--dead", "prod.rejected"]
ROLES = {
    "frontend": _TOPICS,
    "node": [],
    "spark": ["--output", "prod.scored"],
    "backfill": [],
    "client": _TOPICS,
}
_ROW = re.compile(r"^\| (\w+) \| (topic|group|transactional-id) \| `([^`]+)` \| ([\w, ]+) \|$", re.MULTILINE)


def documented(role: str) -> set[Right]:
    rows = _ROW.findall((ROOT / "docs" / "kafka.md").read_text(encoding="utf-8"))
    return {
        Right(right, resource, name)
        for of, resource, name, rights in rows
        if of == role
        for right in rights.split(", ")
    }


@pytest.mark.parametrize("role", ROLES)
def test_a_role(role: str, tmp_path: Path) -> None:
    found = rights_of(role, "railgun", ROLES[role], tmp_path / "acls")
    assert found
    assert set(found) == documented(role)
