"""Brokers for tests that are not about their start, which takes a quarter of the usual processor time here."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from railgun.broker.artifacts import KAFKA_VERSION
from railgun.broker.commands import QUICK_COMPILER, Ports, find_java, format_command, properties
from railgun.broker.errors import PortInUseError
from railgun.broker.installation import cache_folder, install
from railgun.broker.local import LocalBroker, Status
from railgun.exclusive import exclusive

# Java takes its classes from an archive that another broker has left, and does without it where it does not fit.
_FOLDER = f"kafka/{KAFKA_VERSION}-for-tests"
_CLUSTER_ID = "A" * 22
_FREE_S, _AGAIN_S = 30.0, 0.1


def quick_broker(folder: Path) -> LocalBroker:
    """That of a folder, which need not be there yet; it is not started."""
    return LocalBroker(folder, prepare_quick(folder))


def prepare_quick(folder: Path) -> list[str]:
    """Make a broker's folder, unless it is there. Returns the options of the broker's Java."""
    prepared = _prepared()
    if not (folder / "logs").exists():
        shutil.copytree(prepared / "formatted", folder / "logs")
    return [QUICK_COMPILER, f"-XX:SharedArchiveFile={prepared / 'classes.jsa'}", "-Xlog:cds=off"]


def running(broker: LocalBroker) -> Status:
    """How a broker is that several tests use one after another: started where it is not running."""
    return broker.status() or broker.start(0, unheard)


def started_again(broker: LocalBroker, port: int) -> Status:
    """Start a broker at the port that it had. Clients that try to reach it may hold the port for a moment: the system
    may choose it for a connection of theirs, or connect one to itself.
    """
    until_s = time.monotonic() + _FREE_S
    while True:
        try:
            return broker.start(port, unheard)
        except PortInUseError:
            if time.monotonic() > until_s:
                raise
            time.sleep(_AGAIN_S)


def unheard(line: str) -> None:
    """Takes what a broker says of its start."""


def _prepared() -> Path:
    """The folder with the archive and with formatted storage; made once on a machine."""
    found = cache_folder() / _FOLDER
    with exclusive(found.parent / "for-tests.lock"):
        if not found.is_dir():
            with tempfile.TemporaryDirectory(dir=found.parent, prefix="making-") as folder:
                _prepare(Path(folder) / "made")
                (Path(folder) / "made").rename(found)
    return found


def _prepare(made: Path) -> None:
    java, jars = find_java(), install(unheard)
    work = made.parent / "broker"
    work.mkdir()
    (work / "server.properties").write_text(properties(work / "logs", Ports(9092, 9093)), encoding="ascii")
    formatting = format_command(java, jars, _CLUSTER_ID, work / "server.properties")
    subprocess.run(formatting, check=True, capture_output=True, timeout=120)
    shutil.copytree(work / "logs", made / "formatted")
    broker = LocalBroker(work, [QUICK_COMPILER, f"-XX:ArchiveClassesAtExit={made / 'classes.jsa'}"])
    broker.start(0, unheard)
    broker.stop()
