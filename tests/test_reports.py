"""Reports of tests reach the run whatever text is in them; what ends a worker is told last."""

import subprocess
import sys
from pathlib import Path

_CONFTEST = """
import pytest
from tests.conftest import pytest_report_to_serializable
from tests.reports import Teller

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Teller(config))

@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish(nodeid):
    if "test_ends_its_worker" in nodeid:
        raise LookupError("no such worker")
"""
_LOGS = r"""
import logging

def test_logs():
    logging.getLogger("any").warning("logged \udcff")

def test_compares():
    assert "compared" == "\ud800"
"""


def _run(folder: Path, tests: str) -> "subprocess.CompletedProcess[str]":
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 60\n")
    (folder / "test_it.py").write_text(tests)
    here = Path(__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n1", str(folder)],
        env={"PYTHONPATH": str(here), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_half_of_a_pair_of_surrogates_is_told_as_an_escape(tmp_path: Path) -> None:
    ran = _run(tmp_path, _LOGS)
    assert ran.returncode == 1
    assert "1 failed, 1 passed" in ran.stdout
    assert r"assert 'compared' == '\ud800'" in ran.stdout
    assert "INTERNALERROR" not in ran.stdout


def test_what_ended_a_worker_is_told_last(tmp_path: Path) -> None:
    ran = _run(tmp_path, "def test_ends_its_worker(): pass\n")
    assert ran.returncode != 0
    _, told = ran.stdout.split("the first internal error")
    assert "LookupError: no such worker" in told
