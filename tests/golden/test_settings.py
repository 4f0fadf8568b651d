"""What can be set: keys of the file, variables of the environment, defaults."""

import ast
import re
from operator import attrgetter

from railgun.config.settings import KEYS, PASSED_THROUGH, Settings
from tests.golden.promises import held
from tests.golden.sources import nodes

VARIABLE = re.compile(r"RAILGUN_[A-Z][A-Z_]*[A-Z]")


def test_keys_variables_and_defaults() -> None:
    defaults = Settings()
    found = {
        str(key): {"variable": key.variable, "default": attrgetter(str(key))(defaults)}
        for key in KEYS.values()
    }
    held("settings.json", {"keys": found, "passed through": PASSED_THROUGH})


def test_other_variables() -> None:
    """They stand in the sources as they are."""
    texts = {
        node.value
        for _, node in nodes("RAILGUN_")
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    held("variables.json", sorted(each for each in texts if VARIABLE.fullmatch(each)))
