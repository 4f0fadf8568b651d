"""Every script on every executor; and that scripts can fail."""

from pathlib import Path

import pytest

from tests.scripts.executor import EXECUTORS, OracleExecutor
from tests.scripts.expectation import ScriptError
from tests.scripts.runner import complaints
from tests.scripts.script import read_script

SCRIPTS = sorted(Path(__file__).parent.glob("**/*.stream"))


@pytest.mark.parametrize("executor_name", EXECUTORS)
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path, executor_name: str, tmp_path: Path) -> None:
    script = read_script(path)
    executor = EXECUTORS[executor_name](tmp_path / "data")
    if script.needs - executor.abilities:
        pytest.skip(f"{executor_name} lacks {', '.join(sorted(script.needs - executor.abilities))}")
    reference = None if isinstance(executor, OracleExecutor) else OracleExecutor(tmp_path / "oracle")
    try:
        assert not complaints(script, executor, reference)
    finally:
        executor.close()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_says_what_it_shows_and_expects_something(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert any(action.expectation for action in read_script(path).actions)


DEFINITIONS = """
[streams.s]
time = "ts"
late_policy = "discard"
[streams.s.fields]
ts = "timestamp"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS total FROM s OVER INFINITE"
---
"""


def planted(tmp_path: Path, steps: str) -> list[str]:
    path = tmp_path / "planted.stream"
    path.write_text(DEFINITIONS + steps, encoding="utf-8")
    return complaints(read_script(path), OracleExecutor(tmp_path), OracleExecutor(tmp_path))


EVENT = 'event {"ts": 10000, "x": 1}\n'
LATE = EVENT + 'event {"ts": 1}\n'


@pytest.mark.parametrize(
    "steps",
    [
        EVENT + "  expect n=1.0",
        EVENT + "  expect n=2, total=1.0",
        EVENT + "  expect total=1",
        EVENT + "  expect other=1",
        EVENT + "  expect absent n",
        EVENT + "  expect time 10001",
        EVENT + "  expect late * discarded",
        EVENT + "  expect duplicate *",
        EVENT + "  expect warming n",
        EVENT + "  expect partial n=1",
        EVENT + "  expect refused",
        LATE + "  expect n=1",
        LATE + "  expect late * rewritten",
        'event {"ts": "x"}',
        'event {"ts": "x"}\n  expect n=1',
        "set lateness 1s\n  expect n=1",
        "set lateness 1s\n  expect refused",
        "drop metric m",
    ],
)
def test_wrong_expectations_are_caught(steps: str, tmp_path: Path) -> None:
    assert planted(tmp_path, steps)


def test_right_expectations_are_met(tmp_path: Path) -> None:
    assert not planted(tmp_path, EVENT + "  expect n=1, total=1.0\n  expect time 10000")
    assert not planted(tmp_path, LATE + "  expect n=1\n  expect late * discarded")
    assert not planted(tmp_path, 'event {"ts": "x"}\n  expect refused')


@pytest.mark.parametrize(
    "steps",
    ["exit", "expect n=1", "restart\nexpect n=1", "event {", EVENT + "expect n", "add field x", "needs luck"],
)
def test_what_is_no_script(steps: str, tmp_path: Path) -> None:
    with pytest.raises(ScriptError):
        planted(tmp_path, steps)
