"""The clock that ends what a limit within the test does not."""

import subprocess
import sys
from pathlib import Path

_CONFTEST = """
from tests import watchdog

def pytest_configure(config):
    watchdog._GRACE_S = 0.5
    config.pluginmanager.register(watchdog.Watchdog(config))
"""
_HANGS = """
import ctypes, pytest

@pytest.mark.timeout(0.5)
def test_cleans_up_for_ever():
    try:
        ctypes.CDLL(None).pause()
    finally:
        ctypes.CDLL(None).pause()
"""


def test_what_a_limit_cannot_end_is_ended(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 60\n")
    (tmp_path / "test_hangs.py").write_text(_HANGS)
    here = Path(__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        env={"PYTHONPATH": str(here), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 1
    assert "in test_cleans_up_for_ever" in ran.stderr
    assert "passed" not in ran.stdout
