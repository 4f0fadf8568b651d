"""Runs three nodes of a cluster as processes. One is killed half-way and started again later."""

import contextlib
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from railgun.child_python import child_python
from railgun.client.client import Client
from railgun.client.errors import ClientError
from railgun.config.settings import ENVIRONMENT_PREFIX
from railgun.demo.processes import START_LIMIT_S, Child, ServerError
from railgun.demo.run import BATCH_EVENTS, Progress, Watch

NAMES = ("node-1", "node-2", "node-3")
COPIES = 2
# The number of tasks of each partitioner.
PARTITIONS = 6
# The node that answers most tasks is killed after the first share of the departures, and started again after
# the second.
_KILLED_AT, _BACK_AT = 0.5, 0.75
_LOOK_S, _POLL_S, _COMMAND_S = 0.1, 0.05, 60.0
# A node logs this when its copies have caught up.
_READY = '"message": "ready: '
# The limit for the caches of each node, so that the demo runs on a small machine.
_MEMORY = "512MiB"


@dataclass(slots=True)
class Failover:
    """A node that was killed.

    tasks: how many tasks it answered.
    departures: how many departures were scored by then.
    elsewhere_s: how long it took until a batch was answered; batches have events of all tasks. None until then.
    is_back: whether the node was started again.
    """

    node: str
    tasks: int
    departures: int
    began_s: float = field(default_factory=time.monotonic)
    elsewhere_s: float | None = None
    is_back: bool = False


class _Node(Child):
    """A node as a process. is_ready: whether its copies have caught up since its last start."""

    is_ready = False

    def start(self) -> None:
        self.is_ready = False
        super().start()

    def hear(self, line: str) -> None:
        self.is_ready = self.is_ready or _READY in line


class Nodes:
    """Runs the nodes while its `with` block lasts. A thread of its own looks at the cluster now and then.

    seen: the cluster, as the front-end at `url` showed it last.
    failover: the node that was killed; None before that.
    """

    def __init__(self, folder: Path, broker: str, url: str) -> None:
        self._url = url
        self._nodes = {name: _node(name, folder / name, broker) for name in NAMES}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="cluster", daemon=True)
        self.seen: Mapping[str, Any] = {"nodes": [], "tasks": []}
        self.failover: Failover | None = None

    def __enter__(self) -> Self:
        try:
            for node in self._nodes.values():
                node.start()
        except BaseException:
            self._end()
            raise
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._end()
        self._thread.join()

    def await_whole(self) -> None:
        """Wait until all nodes run, and each task has all its copies. Raises ServerError."""
        if self.failover is not None and not self.failover.is_back:
            self.start_again(self.failover)
        deadline_s = time.monotonic() + START_LIMIT_S
        while not (all(node.is_ready for node in self._nodes.values()) and self._is_whole()):
            self.check()
            if time.monotonic() > deadline_s:
                raise ServerError(f"not every task had {COPIES} copies after {START_LIMIT_S:g} s")
            time.sleep(_POLL_S)

    def kill_one(self, departures: int) -> None:
        """Kill the node that answers most tasks."""
        name = max(NAMES, key=self._answered)
        self.failover = Failover(name, self._answered(name), departures)
        self._nodes[name].kill()

    def start_again(self, failover: Failover) -> None:
        """Start the node that was killed."""
        self._nodes[failover.node].start()
        failover.is_back = True

    def check(self) -> None:
        """Raise ServerError if a node has ended by itself."""
        for name, node in self._nodes.items():
            if self.failover is None or self.failover.is_back or self.failover.node != name:
                node.check()

    def as_shown(self) -> str:
        """Return what `railgun cluster` shows. Raises ServerError."""
        command = child_python("-m", "railgun", "cluster", "--url", self._url)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=True)
        except subprocess.SubprocessError as error:
            raise ServerError(f"`railgun cluster` cannot show the nodes: {error}") from error
        return done.stdout

    def stop(self) -> None:
        """Ask all nodes to stop, as an operator would. Raises ServerError."""
        for node in self._nodes.values():
            node.stop()

    def _answered(self, name: str) -> int:
        return sum(answers(task) == name for task in self.seen["tasks"])

    def _is_whole(self) -> bool:
        tasks = self.seen["tasks"]
        return bool(tasks) and all(
            answers(task) is not None
            and sum(copy["state"] in ("answering", "silent") for copy in task["copies"]) == COPIES
            for task in tasks
        )

    def _look(self) -> None:
        with Client(self._url, connects_within_s=0.0) as client:
            while not self._stopped.wait(_LOOK_S):
                with contextlib.suppress(ClientError):  # it is looked at again
                    self.seen = client.cluster()

    def _end(self) -> None:
        with contextlib.ExitStack() as stack:
            for node in self._nodes.values():
                stack.callback(node.end)


class FailingNodes:
    """Kills a node half-way and starts it again later. It passes all progress on to another watch."""

    def __init__(self, nodes: Nodes, watch: Watch) -> None:
        self._nodes, self._watch = nodes, watch

    def scored(self, progress: Progress) -> None:
        self._nodes.check()
        failover = self._nodes.failover
        if failover is None:
            if progress.done >= progress.total * _KILLED_AT:
                self._nodes.kill_one(progress.done)
        else:
            if failover.elsewhere_s is None and progress.done >= failover.departures + BATCH_EVENTS:
                failover.elsewhere_s = time.monotonic() - failover.began_s
            if not failover.is_back and progress.done >= progress.total * _BACK_AT:
                self._nodes.start_again(failover)
        self._watch.scored(progress)

    def checked(self, done: int, total: int) -> None:
        self._watch.checked(done, total)


def answers(task: Mapping[str, Any]) -> str | None:
    """Return the node that answers a task, from the task as the cluster shows it."""
    return next((str(copy["node"]) for copy in task["copies"] if copy["state"] == "answering"), None)


def _node(name: str, data: Path, broker: str) -> _Node:
    settings = {
        f"{ENVIRONMENT_PREFIX}CLUSTER__NODE_NAME": name,
        f"{ENVIRONMENT_PREFIX}ENGINE__MEMORY_LIMIT_BYTES": _MEMORY,
    }
    return _Node(
        "node", "--units", "1", "--broker", broker, "--data", str(data), settings=settings, name=name
    )
