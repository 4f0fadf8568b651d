"""What tests cost: a row for each path, once all that its pytest has left behind has ended, and whether all passed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

_TEST = """
import subprocess
def test_it():
    subprocess.Popen(["/bin/sh", "-c", "sleep 0.5; : > '{ended}'"], start_new_session=True)
    assert {outcome}
"""


@pytest.mark.parametrize(("passes", "code", "said"), [(True, 0, "1 passed"), (False, 1, "1 failed")])
def test_what_outlives_its_pytest_is_waited_for(tmp_path: Path, passes: bool, code: int, said: str) -> None:
    place, ended = tmp_path / "test_it.py", tmp_path / "ended"
    place.write_text(_TEST.format(ended=ended, outcome=passes), encoding="utf-8")
    command = [sys.executable, "-m", "bench.cost_of_tests", str(place)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=250)
    assert done.returncode == code
    assert ended.exists()
    assert re.search(rf"\| `{place}` \| \d+ \| \d+ \| {said} ", done.stdout), done.stdout
