"""Runs a cluster on this machine: a broker, nodes as processes, and a front-end that starts when they are ready."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.children import ChildFailedError, environment_of
from bench.kafka import running_broker
from bench.service import Service

FETCHED = re.compile(r"has come from \S+ in (?P<seconds>[\d.]+) s: (?P<bytes>\d+) bytes")
"""What a node logs of a copy whose data has come from another node."""

_WHOLE_S, _STOP_S, _LOOK_S = 180.0, 120.0, 0.1


class NodeProcess:
    """A node of one unit as a process. Its folder outlives it."""

    def __init__(self, name: str, folder: Path, broker: str) -> None:
        self.name, self._folder, self._broker = name, folder, broker
        self._process: subprocess.Popen[bytes] | None = None
        self._begins_at = 0

    def start(self, settings: Mapping[str, str] | None = None, tree: Path | None = None) -> None:
        """Start the node. It is ready when the cluster is whole.

        settings: further environment variables.  tree: whose modules it runs (by default this tree's).
        """
        environment = {
            **(os.environ if tree is None else environment_of(tree)),
            "RAILGUN_CLUSTER__NODE_NAME": self.name,
            "RAILGUN_ENGINE__MEMORY_LIMIT_BYTES": "512MiB",
            **(settings or {}),
        }
        command = [sys.executable, "-m", "railgun", "node", "--units", "1", "--broker", self._broker]
        with self.log.open("ab") as log:
            self._begins_at = log.tell()
            self._process = subprocess.Popen(
                [*command, "--data", str(self.data)],
                env=environment,
                cwd=tree,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def data(self) -> Path:
        """Its data folder."""
        return self._folder / self.name

    @property
    def log(self) -> Path:
        """The file of what it logs."""
        return self._folder / f"{self.name}.log"

    def fetched(self) -> re.Match[str] | None:
        """Return what it has said of the first fetch since its last start; None if there was none."""
        return FETCHED.search(self.log.read_bytes()[self._begins_at :].decode())

    def _family(self) -> list[psutil.Process]:
        assert self._process is not None
        node = psutil.Process(self._process.pid)
        return [node, *node.children(recursive=True)]

    def unit(self) -> psutil.Process:
        """Return the process of the node's unit. Raises ChildFailedError."""
        for process in self._family():
            if "railgun.unit" in process.cmdline():
                return process
        raise ChildFailedError(f"{self.name}: there is no unit")

    def kill_unit(self) -> None:
        """Kill the unit. The node starts it again."""
        self.unit().kill()

    def kill(self) -> None:
        """Kill all processes of the node."""
        if self._process is not None:
            for process in self._family():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End the node as an operator would. Raises ChildFailedError if it does not end well."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(_STOP_S)
        self._process = None
        if code:
            raise ChildFailedError(f"{self.name}: code {code}")


@dataclass(frozen=True, slots=True)
class NodeCluster:
    """A cluster that runs. nodes: by name.  service: the front-end.  folder: has the nodes' data and logs."""

    nodes: dict[str, NodeProcess]
    service: Service
    folder: Path

    def keep_logs(self) -> Path:
        """Copy the nodes' logs to a folder that outlives this cluster, and return the folder."""
        kept = Path(tempfile.mkdtemp(prefix="railgun-bench-logs-"))
        for log in self.folder.glob("*.log"):
            shutil.copy(log, kept)
        return kept

    def seen(self) -> dict[str, Any]:
        """Return the cluster as the front-end sees it."""
        found: dict[str, Any] = self.service.ask("GET", "/v1/cluster")
        return found

    def await_whole(self) -> None:
        """Wait until each task has an answering and a silent copy. Raises ChildFailedError."""
        self.await_seen(_is_whole, "not all copies are there")

    def await_whole_again(self) -> None:
        """Wait until a node that was ended and started is seen to be away, and then whole. Raises ChildFailedError."""
        self.await_seen(lambda seen: not _is_whole(seen), "no node is seen to be away")
        self.await_whole()

    def await_seen(self, is_so: Callable[[dict[str, Any]], bool], otherwise: str) -> None:
        """Wait until a condition is true of the cluster. Raises ChildFailedError with the text `otherwise`."""
        until_s = time.monotonic() + _WHOLE_S
        while not is_so(seen := self.seen()):
            if time.monotonic() > until_s:
                raise ChildFailedError(f"{otherwise} after {_WHOLE_S:g} s: {seen}")
            time.sleep(_LOOK_S)

    def answering(self) -> list[str]:
        """Return for each task the node that answers it."""
        return [
            copy["node"]
            for task in self.seen()["tasks"]
            for copy in task["copies"]
            if copy["state"] == "answering"
        ]


def _is_whole(seen: dict[str, Any]) -> bool:
    copies = [sorted(str(copy["state"]) for copy in task["copies"]) for task in seen["tasks"]]
    return bool(copies) and all(states == ["answering", "silent"] for states in copies) and not seen["moves"]


@contextmanager
def node_cluster(
    definitions: str,
    names: Sequence[str],
    settings: Mapping[str, str] | None = None,
    tree: Path | None = None,
) -> Iterator[NodeCluster]:
    """Yield a cluster on clean folders, once it is whole.

    settings: further environment variables of nodes.  tree: whose modules it runs (by default this tree's).
    """
    with (
        running_broker() as broker,
        tempfile.TemporaryDirectory(prefix="railgun-bench-nodes-") as folder,
        ExitStack() as stack,
    ):
        nodes = {name: NodeProcess(name, Path(folder), broker) for name in names}
        for node in nodes.values():
            stack.callback(node.kill)
            node.start(settings, tree)
        service = stack.enter_context(Service(Path(folder), definitions, "os", broker, role="frontend"))
        service.start(tree)
        cluster = NodeCluster(nodes, service, Path(folder))
        cluster.await_whole()
        yield cluster
        service.stop()
