"""The end of a unit's process, whatever holds it up: here a question to a broker that is away."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from railgun.node.ending import DEADLINES
from tests.unit.processes import ROOT

_HELD_UP = """
import sys, threading
from confluent_kafka.admin import AdminClient
from railgun.logs.setup import logging_as
from railgun.node.ending import Ending
from railgun.node.parent import Parent
from railgun.node.signals import stop_when_asked

stopped = threading.Event()
stop_when_asked(stopped)
Parent(stopped)
with logging_as("info", "auto"):
    Ending(stopped, "unit 0", 0.2)
    threading.Timer(1.0, print, ["up"], {"flush": True}).start()
    AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}).list_topics(timeout=600)
"""


@pytest.mark.parametrize("by", ["signal", "parent"])
def test_a_process_that_a_broker_holds_up_ends_in_time(by: str) -> None:
    """by: who asks it to. A parent that is gone reads no log either."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HELD_UP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"up\n"
        if by == "signal":
            process.send_signal(signal.SIGTERM)
        else:
            process.stderr.close()
            process.stdin.close()
        assert process.wait(30.0) == 1
        if by == "signal":
            assert b"unit 0 ends as it is, 0.2 s after it was asked to" in process.stderr.read()
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        process.wait()


_UNIT_HELD_UP = """
import time
from railgun.unit import __main__

def run_unit(*given):
    print("up", flush=True)
    time.sleep(600)

__main__.run_unit = run_unit
__main__.main()
"""


@pytest.mark.real_time
def test_a_unit_has_as_long_as_is_said(tmp_path: Path) -> None:
    place = ["--node-folder", str(tmp_path), "--index", "0", "--units", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", _UNIT_HELD_UP, *place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            begun_s = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINES.over_s + 30.0) == 1
            assert time.monotonic() - begun_s >= DEADLINES.over_s
        finally:
            process.kill()
