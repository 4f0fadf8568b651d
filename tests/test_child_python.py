"""Python that is started again runs what its parent runs, and nothing that lies in the working folder."""

import os
import subprocess
from pathlib import Path

import pytest

from railgun.child_python import child_python
from tests.forked import ROOT

SAYS_FROM_WHERE = "import railgun, colorsys; print(railgun.__file__, colorsys.__file__, sep='\\n')"


def places(command: list[str], folder: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_modules_of_the_working_folder_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "colorsys.py").write_text("")
    monkeypatch.chdir(tmp_path)
    ours, theirs = places(child_python("-c", SAYS_FROM_WHERE), tmp_path)
    assert Path(ours) == ROOT / "railgun" / "__init__.py"
    assert not Path(theirs).is_relative_to(tmp_path)


def test_a_checkout_is_run_from_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert "-P" not in child_python("-m", "railgun")
