"""Settings that were removed are refused, all of them at once."""

from pathlib import Path

import pytest

from railgun.config.kinds import ConfigError
from railgun.config.loading import load_settings


def test_all_that_are_given_are_named(tmp_path: Path) -> None:
    file = tmp_path / "railgun.toml"
    file.write_text("[cluster]\nnode_index = 0\nnode_count = 2\n")
    environment = {"RAILGUN_CLUSTER__NODE_COUNT": "2"}
    with pytest.raises(ConfigError) as refused:
        load_settings(file, environment)
    said = str(refused.value)
    for place in (f"{file}: cluster.node_index", f"{file}: cluster.node_count", *environment):
        assert place in said
    assert said.endswith("leave out all of them")
    with pytest.raises(ConfigError, match=r"^RAILGUN_CLUSTER__NODE_COUNT: .*; leave out this setting$"):
        load_settings(None, environment)
