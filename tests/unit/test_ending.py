"""The end of a unit's process, whatever holds it up: here a question to a broker that is away."""

import signal
import subprocess
import sys

import pytest

from tests.unit.processes import ROOT

_HELD_UP = """
import sys, threading
from confluent_kafka.admin import AdminClient
from railgun.config.settings import LoggingSettings
from railgun.logs.setup import logging_as
from railgun.unit.ending import Ending
from railgun.unit.parent import Parent
from railgun.unit.process import stop_when_asked

stopped = threading.Event()
stop_when_asked(stopped)
Parent(stopped)
with logging_as(LoggingSettings()):
    Ending(stopped, 0, 0.2)
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
