"""The tree keeps its habits, and each rule is seen to catch what it is there for."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.tidy import dependency_rules, doc_rules, source_rules
from tests.tidy.tree import Tree

Rule = Callable[[Tree], Iterator[str]]

RULES: list[Rule] = [
    source_rules.file_sizes,
    source_rules.function_sizes,
    source_rules.module_docstrings,
    source_rules.names,
    source_rules.retired_words,
    source_rules.masked_arrays,
    source_rules.handed_in,
    source_rules.listed_places,
    source_rules.open_ends,
    source_rules.machine_paths,
    doc_rules.links,
    doc_rules.make_commands,
    doc_rules.railgun_commands,
    doc_rules.decisions,
    dependency_rules.pins,
    dependency_rules.locks_are_portable,
    dependency_rules.reasons,
    dependency_rules.installed_by_path,
]

ROOT = Path(__file__).parents[2]

_HEAD = '"""A module."""\n'
_PROJECT = '[project]\ndependencies = ["numpy>=2"]\n'
_PAGE = "| `numpy` | arrays |\n"
_LOCK = "numpy==2.4.0 \\\n    --hash=sha256:00\n"
_DECISION = "# Title\n\n## Context\n\n## Decision\n\n## Consequences\n"

CLEAN = {
    **{place if place.endswith(".py") else f"{place}/a.py": _HEAD for place in source_rules.LISTED_PLACES},
    "room/store.py": _HEAD + "def f():\n    return 1\n",
    "Makefile": "setup: x\n\ntest: setup\n",
    "README.md": "# Start\n\n[The page](docs/page.md#the-way-in), `make test`:\n\n    make setup test\n",
    "docs/page.md": "# The way in!\n\n[back](../README.md), [above](#the-way-in), [away](https://example.org/x)\n",
    "docs/decisions/0001-first.md": _DECISION,
    "docs/dependencies.md": _PAGE,
    "pyproject.toml": _PROJECT,
    "requirements.lock": _LOCK,
    "requirements-demo.lock": _LOCK,
    "requirements-dev.lock": _LOCK,
    "room/__pycache__/left.py": "no docstring, but nobody's source",
}

_LONG_FUNCTION = "def long_one():\n" + "    x = 1\n" * source_rules.FUNCTION_LINES_MAX
_LONG_TEST = "def test_long():\n" + "    x = 1\n" * source_rules.TEST_FUNCTION_LINES_MAX
_MADE_UP_CLI = {
    "railgun/__init__.py": _HEAD,
    "railgun/__main__.py": _HEAD + "import sys\nsys.exit('run' not in sys.argv)\n",
}

# A rule, what is planted in the clean tree (None: the file is not there), and what the rule says of it.
PLANTED: list[tuple[Rule, Mapping[str, str | None], str]] = [
    (source_rules.file_sizes, {"room/a.py": _HEAD + "x = 1\n" * source_rules.FILE_LINES_MAX}, "501 lines"),
    (
        source_rules.file_sizes,
        {"tests/a.py": _HEAD + "x = 1\n" * source_rules.TEST_FILE_LINES_MAX},
        "601 lines",
    ),
    (source_rules.function_sizes, {"room/a.py": _HEAD + _LONG_FUNCTION}, "long_one has 61 lines"),
    (source_rules.function_sizes, {"room/a.py": _HEAD + "async " + _LONG_FUNCTION}, "long_one has 61 lines"),
    (source_rules.function_sizes, {"tests/a.py": _HEAD + _LONG_TEST}, "test_long has 71 lines"),
    (source_rules.module_docstrings, {"room/a.py": "x = 1\n"}, "room/a.py"),
    (source_rules.module_docstrings, {"room/__init__.py": ""}, "room/__init__.py"),
    (source_rules.names, {"room/utils.py": _HEAD}, "'utils'"),
    (source_rules.names, {"room/chunk_helper.py": _HEAD}, "'chunk_helper'"),
    (source_rules.names, {"common/a.py": _HEAD}, "'common'"),
    (source_rules.retired_words, {"railgun/a.py": _HEAD + "def open_door():\n    pass\n"}, "open_door: door"),
    (source_rules.retired_words, {"railgun/consent.py": _HEAD}, "railgun/consent.py:1: consent"),
    (
        source_rules.retired_words,
        {"frontend/a.py": _HEAD + "class TableDoor:\n    pass\n"},
        "TableDoor: door",
    ),
    (source_rules.retired_words, {"reservoir/a.py": _HEAD + "upkeep_s = 1\n"}, "upkeep_s: upkeep"),
    (source_rules.retired_words, {"railgun/live_backfill.py": _HEAD}, "live_backfill: live_backfill is"),
    (
        source_rules.retired_words,
        {"railgun/a.py": _HEAD + "class NoLiveBackfill:\n    pass\n"},
        "NoLiveBackfill: live_backfill",
    ),
    (source_rules.masked_arrays, {"room/a.py": _HEAD + "x = np.unique(a[:, 0], axis=0)\n"}, "room/a.py:2"),
    (source_rules.masked_arrays, {"room/a.py": _HEAD + "x = np.setdiff1d(a, b)\n"}, "np.setdiff1d"),
    (source_rules.handed_in, {"reservoir/a.py": _HEAD + "import time\n"}, "reservoir/a.py:2: time;"),
    (
        source_rules.handed_in,
        {"railgun/task/a.py": _HEAD + "from time import monotonic\n"},
        "time.monotonic;",
    ),
    (source_rules.listed_places, {"railgun/unit/loop.py": None}, "railgun/unit/loop.py: a rule names it"),
    (source_rules.listed_places, {"railgun/plan/a.py": None}, "railgun/plan: a rule names it"),
    (source_rules.handed_in, {"railgun/state/rows/a.py": _HEAD + "x = os.urandom(8)\n"}, "os.urandom;"),
    (
        source_rules.handed_in,
        {"railgun/plan/a.py": _HEAD + "x = threading.Thread(target=f)\n"},
        "threading.Thread;",
    ),
    (source_rules.handed_in, {"railgun/unit/loop.py": _HEAD + "import time\n"}, "loop.py:2: time;"),
    (source_rules.handed_in, {"reservoir/a.py": _HEAD + "from threading import Event\n"}, "threading.Event;"),
    (
        source_rules.handed_in,
        {"railgun/interpreter/a.py": _HEAD + "from concurrent.futures import ThreadPoolExecutor\n"},
        "concurrent.futures.ThreadPoolExecutor;",
    ),
    (source_rules.open_ends, {"room/a.py": _HEAD + "# TO" + "DO: later\n"}, "room/a.py:2"),
    (source_rules.open_ends, {"docs/page.md": "# The way in\n\nFIX" + "ME\n"}, "docs/page.md:3"),
    (source_rules.open_ends, {"room/a.py": _HEAD + "raise NotImplemented" + "Error\n"}, "room/a.py:2"),
    (source_rules.machine_paths, {"Makefile": "test:\n\tcd /ro" + "ot/x\n"}, "Makefile:2"),
    (source_rules.machine_paths, {"room/data.stream": 'open "/wo' + 'rk/main/data"\n'}, "room/data.stream:1"),
    (
        source_rules.machine_paths,
        {"docs/page.md": "# The way in\n\nsee /tm" + "p/x22/run.py\n"},
        "docs/page.md:3",
    ),
    (doc_rules.links, {"docs/page.md": "# The way in\n\n[gone](nowhere.md)\n"}, "nowhere.md"),
    (doc_rules.links, {"docs/page.md": "# The way out\n"}, "docs/page.md#the-way-in"),
    (doc_rules.make_commands, {"README.md": "Type `make tests`.\n"}, "make tests"),
    (doc_rules.make_commands, {"README.md": "Type:\n\n    $ make setup bench\n"}, "make bench"),
    (doc_rules.make_commands, {"README.md": "```sh\nmake PYTHON=python3 demos\n```\n"}, "make demos"),
    (
        doc_rules.railgun_commands,
        {"railgun/cli/main.py": _HEAD, "README.md": "`railgun run x`, `railgun fly`\n", **_MADE_UP_CLI},
        "railgun fly",
    ),
    (doc_rules.decisions, {"docs/decisions/0003-third.md": _DECISION}, "0002-its-title.md"),
    (doc_rules.decisions, {"docs/decisions/0001-second.md": _DECISION}, "0002-its-title.md"),
    (
        doc_rules.decisions,
        {"docs/decisions/0001-first.md": "# Title\n\n## Context\n\n## Decision\n"},
        "'Consequences'",
    ),
    (dependency_rules.pins, {"requirements.lock": ""}, "requirements.lock: numpy>=2"),
    (dependency_rules.pins, {"requirements-dev.lock": _LOCK.replace("2.4", "1.9")}, "pinned: 1.9.0"),
    (dependency_rules.locks_are_portable, {"requirements.lock": "--index-url x\n" + _LOCK}, "--index-url"),
    (dependency_rules.locks_are_portable, {"requirements.lock": "--find-links x\n" + _LOCK}, "--find-links"),
    (dependency_rules.reasons, {"docs/dependencies.md": ""}, "no line for numpy"),
    (
        dependency_rules.reasons,
        {"docs/dependencies.md": _PAGE + "| `scipy` | more |\n"},
        "scipy is no dependency",
    ),
    (
        dependency_rules.installed_by_path,
        {"room/a.py": _HEAD + "x = \"pip install 'rail" + "gun[spark]'\"\n"},
        "room/a.py:2",
    ),
    (
        dependency_rules.installed_by_path,
        {"docs/page.md": "# The way in\n\n    pip install -U rail" + "gun-engine\n"},
        "docs/page.md:3",
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_tree_keeps_the_rule(rule: Rule) -> None:
    assert list(rule(Tree(ROOT))) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_clean_tree_breaks_no_rule(rule: Rule, tmp_path: Path) -> None:
    assert list(rule(_planted(tmp_path, CLEAN))) == []


@pytest.mark.parametrize(("rule", "files", "message"), PLANTED)
def test_a_planted_breach_is_caught(
    rule: Rule, files: Mapping[str, str | None], message: str, tmp_path: Path
) -> None:
    [found] = list(rule(_planted(tmp_path, {**CLEAN, **files})))
    assert message in found


def test_the_file_that_may_be_longer_is() -> None:
    assert Tree(ROOT).read(Path(source_rules.LONGER)).count("\n") > source_rules.FILE_LINES_MAX


def test_every_rule_has_a_planted_breach() -> None:
    assert {rule for rule, _, _ in PLANTED} == set(RULES)


def test_what_git_ignores_is_not_looked_at() -> None:
    files = Tree(ROOT).files
    assert Path("pyproject.toml") in files
    assert not [path for path in files if ".venv" in path.parts or "__pycache__" in path.parts]


def _planted(root: Path, files: Mapping[str, str | None]) -> Tree:
    for name, text in files.items():
        if text is None:
            continue
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Tree(root)
