"""A plugin of pytest: what tests cost in processor time, folder by folder.

    python -m pytest -p bench.cost_of_tests [PATH ...]

Counted are the user and system seconds of pytest's workers and of the processes that they waited for: servers, units,
Spark's Java. The broker that tests share is left out, because it outlives the tests that use it.
"""

import os
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

_FOLDERS = pytest.StashKey[defaultdict[str, float]]()
# What a worker of pytest-xdist hands on to the process that prints.
_OUTPUT = "cost_of_tests"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FOLDERS] = defaultdict(float)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before_s = _spent_s()
    done = yield
    item.config.stash[_FOLDERS][_folder(item)] += _spent_s() - before_s
    return done


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        folders = session.config.stash[_FOLDERS]
        output[_OUTPUT] = dict(folders)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    folders: defaultdict[str, float] = node.config.stash[_FOLDERS]
    for folder, cost_s in getattr(node, "workeroutput", {}).get(_OUTPUT, {}).items():
        folders[folder] += cost_s


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    folders = config.stash[_FOLDERS]
    terminalreporter.section("processor seconds")
    terminalreporter.line("| tests | processor s |\n| --- | --- |")
    for folder, cost_s in sorted(folders.items(), key=lambda each: -each[1]):
        terminalreporter.line(f"| `{folder}` | {cost_s:,.0f} |")
    terminalreporter.line(f"| all | {sum(folders.values()):,.0f} |")


def _folder(item: pytest.Item) -> str:
    """Return the first folder below `tests/` that a test is in: `tests/spark`."""
    return "/".join(item.path.relative_to(item.config.rootpath).parts[:2])


def _spent_s() -> float:
    """Return the processor time of this process and of all that it waited for, in seconds."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
