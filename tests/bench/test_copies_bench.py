"""The benchmark of new copies reads what a node logs of a fetch."""

from pathlib import Path

import pytest

from bench.nodes import NodeProcess
from railgun.node import relay
from tests.unit.test_fetching import _KEY, _NAME, _Unit


def test_a_fetch_is_found_in_the_log_of_a_node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    unit, node = _Unit(tmp_path), NodeProcess("n", tmp_path, "")
    unit.now_s = 2.5
    unit.fetcher.hear(relay.Fetched(_NAME, "", 700, "a/0", 90, 10))
    with caplog.at_level("INFO"):
        unit.fetcher.look(_KEY)
    node.log.write_text("s.1/k/0: its data is fetched from another node\n")
    assert node.fetched() is None
    node.log.write_text(caplog.text)
    found = node.fetched()
    assert found is not None
    assert (found["bytes"], found["seconds"]) == ("90", "2.5")
