"""One broker for all tests of a run, whichever process asks first, ended with the run whatever happens."""

import os
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

from railgun.broker.local import LocalBroker
from railgun.broker.pid_file import spawn
from railgun.exclusive import exclusive
from tests.broker.quick_broker import quick_broker

# The folder of this run's broker and the process that the run is, for the workers that it starts.
_FOLDER, _OWNER = "RAILGUN_TEST_BROKER_FOLDER", "RAILGUN_TEST_BROKER_OWNER"
# Where it listens, once a test of this process has asked.
_asked: list[str] = []

# Ends the broker of a run that was killed; ends itself when the run has ended its broker.
_WATCH = """
while kill -0 "$1" 2>/dev/null && [ -e "$2/broker.pid" ]; do sleep 1; done
cd "$4" && [ -e "$2/broker.pid" ] && "$3" -m railgun broker stop --data "$2" && rm -rf "$2"
"""


def begin_run() -> None:
    """Called once, by the process that the run is."""
    os.environ[_FOLDER] = str(Path(tempfile.gettempdir(), f"railgun-broker-{uuid.uuid4().hex}"))
    os.environ[_OWNER] = str(os.getpid())


def end_run() -> None:
    """Called by the same process when all tests have run."""
    folder = Path(os.environ[_FOLDER])
    if not folder.exists():
        return
    try:
        LocalBroker(folder).stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def address() -> str:
    """Where the broker of this run listens; started where it was not yet."""
    folder = Path(os.environ[_FOLDER])
    with exclusive(folder / "test.lock"):
        broker = quick_broker(folder)
        status = broker.status()
        if status is None:
            status = broker.start(0, lambda line: sys.__stderr__ and print(line, file=sys.__stderr__))
            words = ("watch", os.environ[_OWNER], str(folder), sys.executable, str(Path(__file__).parents[2]))
            spawn(["/bin/sh", "-c", _WATCH, *words], folder / "watch.log")
    _asked.append(status.address)
    return status.address


def known_address() -> str | None:
    """Where the broker listens; None where no test of this process has asked for it."""
    return _asked[-1] if _asked else None
