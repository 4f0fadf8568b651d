"""A node's own processes load nothing of what its units compute with: they compute nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.processes import ROOT

_COMPUTES = {"numba", "pyarrow", "rocksdict", "reservoir.native.jit"}
_SUPERVISOR = """
import sys
from railgun.cli.main import main
from railgun.node.supervisor import Supervisor
from reservoir.native import image

def run(self, *given, prepare, **more):
    prepare()
    print(*sys.modules)
    return True

Supervisor.run = run
image.is_there = lambda: True
sys.exit(main(["node", *sys.argv[1:]]))
"""
_LEADER = """
import sys
from railgun.node.leader import __main__

def run_leader(*given):
    print(*sys.modules)

__main__.run_leader = run_leader
sys.exit(__main__.main(sys.argv[1:]))
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "railgun.toml"
    path.write_text('[cluster]\nbroker = "127.0.0.1:1"\nmetrics_port = 0\n')
    return path


def loaded(program: str, *words: str | Path) -> set[str]:
    """The modules of a process by the time that it would begin."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=ROOT,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return set(ended.stdout.split())


def test_the_supervisors_process_loads_no_numpy_either(config: Path, tmp_path: Path) -> None:
    modules = loaded(_SUPERVISOR, "--data", tmp_path / "data", "--config", config)
    assert "railgun.node.supervisor" in modules
    assert not modules & {*_COMPUTES, "numpy"}


def test_the_leaders_process(config: Path, tmp_path: Path) -> None:
    words = ["--node-folder", tmp_path, "--units", "1", "--release", "1", "--began-ms", "1"]
    modules = loaded(_LEADER, *words, "--config", config)
    assert "railgun.node.leader.leading" in modules
    assert not modules & {*_COMPUTES, "llvmlite"}
