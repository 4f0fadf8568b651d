"""A node is stopped whatever its main thread does when it is asked to."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.processes import ROOT

_NODE = """
import os, signal, sys, time
from railgun.cli.main import main
from railgun.node.supervisor import Supervisor

def run(self, stopped, *_, **__):
    # A wait has this lock for a moment, twenty times a second.
    with stopped._cond:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
        time.sleep(0.2)
    return stopped.wait(30)

Supervisor.run = run
sys.exit(main(["node", *sys.argv[2:]]))
"""


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_it_is_asked_while_it_begins_to_wait(signal: str, tmp_path: Path) -> None:
    config = tmp_path / "railgun.toml"
    config.write_text('[cluster]\nbroker = "127.0.0.1:1"\nmetrics_port = 0\n')
    words = [sys.executable, "-c", _NODE, signal, "--data", str(tmp_path / "data"), "--config", str(config)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "stopped" in ended.stderr


_FAILING = """
import os, signal, sys, threading
from railgun.node.signals import on_signals

stopped, failed = threading.Event(), threading.Event()

def fail():
    failed.set()
    raise RuntimeError("a thread cannot be started")

on_signals({signal.SIGHUP: fail, signal.SIGTERM: stopped.set})
os.kill(os.getpid(), signal.SIGHUP)
assert failed.wait(30)
os.kill(os.getpid(), signal.SIGTERM)
sys.exit(not stopped.wait(30))
"""


def test_an_action_that_fails_keeps_no_other_from_being_heard() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FAILING], cwd=ROOT, capture_output=True, text=True, timeout=90, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "a defect: SIGHUP" in ended.stderr
