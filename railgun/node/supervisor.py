"""Supervises the child processes of one node: starts them, restarts those that die or hang, and stops them together.

`railgun node` runs it. The children are the units, the leader's process and the transfer process.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from railgun.node.child_process import ChildProcess
from railgun.node.ending import STOP_S
from railgun.node.folder import held_folder
from railgun.node.identity import AUTO, NodeRefusedError, node_identity
from railgun.node.parent import UnitEnded
from railgun.node.relay import LEADER, TRANSFER, passed_on, unit_address
from railgun.wording import counted, listed

AGAIN = "--again"
"""The option that tells the leader's process, when it is started again, that its node runs already."""
NODE_READY = "ready"
"""A node prints this once all its units have caught up, and again after a unit was started again."""
NODE_NOT_READY = "not ready: "
"""The beginning of the line that a node prints instead, if copies have failed here that other nodes could answer."""

_log = logging.getLogger("railgun.node")
_encode = msgspec.json.Encoder().encode


class Supervisor:
    """Supervises the units of a node's folder, which it locks, the process that takes part in the group of nodes, and
    the one that serves and fetches snapshots. It relays messages between them.

    units: the command of each unit.
    name: `cluster.node_name`.
    leader: the command of the leader's process; empty: none. AGAIN is appended when it is started again.
    transfer: the command of the transfer process; empty: none. The node is ready without it.
    hung_after_s: `cluster.hung_after_s`; None: no process is killed if it hangs.
    Raises NodeFolderError if another node has locked the folder, IdentityError, and NodeRefusedError.
    """

    def __init__(
        self,
        folder: Path,
        units: Sequence[Sequence[str]],
        *,
        name: str = AUTO,
        leader: Sequence[str] = (),
        transfer: Sequence[str] = (),
        hung_after_s: float | None = None,
    ) -> None:
        self._folder, self._name = folder, name
        self.units = [
            ChildProcess(
                index, command, hung_after_s=hung_after_s, relay=partial(self._relay, unit_address(index))
            )
            for index, command in enumerate(units)
        ]
        others = len(units)
        self._others = [ChildProcess(others, leader, "the leader's process", [AGAIN])] if leader else []
        self.transfer = (
            ChildProcess(
                others + 1,
                transfer,
                "the transfer process",
                hung_after_s=hung_after_s,
                relay=partial(self._relay, TRANSFER),
            )
            if transfer
            else None
        )
        """The process that serves and fetches snapshots."""
        self._addressees = {unit_address(unit.index): unit for unit in self.units}
        if self.leader is not None:
            self._addressees[LEADER] = self.leader
        if self.transfer is not None:
            self._addressees[TRANSFER] = self.transfer

    @property
    def leader(self) -> ChildProcess | None:
        """The process that takes part in the group of nodes."""
        return self._others[0] if self._others else None

    @property
    def has_caught_up(self) -> bool:
        """Whether all units have caught up with their logs, except for copies that have failed."""
        return all(unit.is_ready for unit in self.units)

    @property
    def shortfall(self) -> str | None:
        """The line about copies that have failed here while other nodes have copies; None if there are none.

        If those nodes were stopped, nobody could answer these tasks.
        """
        failed = sorted(task for unit in self.units for task in unit.failed_here)
        if not failed:
            return None
        return f"{NODE_NOT_READY}{listed(failed)}: failed here, and another node has a copy that could answer"

    @property
    def waits_for(self) -> str | None:
        """Why the node is not ready; None if it is."""
        hung = [unit.hang for unit in self.units if unit.hang is not None]
        if hung:
            return f"{NODE_NOT_READY}{listed(hung)}"
        if self.has_caught_up:
            return self.shortfall
        ended = [unit.ended for unit in self.units if unit.ended is not None]
        return f"starting: {'; '.join(ended) or 'units are starting'}"

    def run(
        self,
        stopped: threading.Event,
        on_ready: Callable[[], object] = lambda: None,
        interval_s: float = 0.05,
        prepare: Callable[[], object] = lambda: None,
        on_shortfall: Callable[[str], object] = lambda shortfall: None,
    ) -> bool:
        """Run the units until asked to stop. Returns whether every unit then ended without an error.

        on_ready: is called once all units have caught up, and again when they have caught up after a unit was started
            again. It is not called again after an outage of the broker.
        interval_s: how often the units are watched, in seconds.
        prepare: is called before any unit is started, once the folder is known to be this node's alone.
        on_shortfall: is called, in the place of `on_ready`, with the shortfall that keeps the node from being ready.
        """
        with held_folder(self._folder):
            # The identity is made here: each unit reads it, and would make one of its own.
            node_identity(self._folder, self._name)
            prepare()
            processes, units_run = list(self._others), False
            said: tuple[int, str | None] = -1, None
            try:
                while not stopped.wait(interval_s):
                    for process in processes:
                        if process.watch() and process in self.units and self.leader is not None:
                            now_ms = time.time_ns() // 1_000_000
                            ended = UnitEnded(process.index, now_ms, process.why_ended)
                            self.leader.tell(_encode(ended) + b"\n")
                    self._check_refusal()
                    if not units_run and all(each.is_ready for each in self._others):
                        # The leader's process has found that the node may have its name.
                        processes, units_run = processes + self.units, True
                        if self.transfer is not None:
                            processes.append(self.transfer)
                    news = self._news(said)
                    if news is not None:
                        said = news
                        if news[1] is None:
                            _log.info("ready: %s", counted(len(self.units), "unit"))
                            on_ready()
                        else:
                            _log.warning("%s", news[1])
                            on_shortfall(news[1])
            finally:
                for process in processes:
                    process.ask_to_stop()
                deadline_s = time.monotonic() + STOP_S
                codes = [process.end(deadline_s) for process in processes]
        return not any(codes)

    def _relay(self, sender: str, line: bytes) -> None:
        """Pass on a line to the process that it is addressed to, or drop it if that process cannot take it now."""
        passed = passed_on(line, sender)
        addressee = None if passed is None else self._addressees.get(passed[0])
        if passed is not None and addressee is not None:
            addressee.tell(passed[1])

    def _news(self, said: tuple[int, str | None]) -> tuple[int, str | None] | None:
        """Return the news to tell: (the number of starts of units, the shortfall or None); None if there are none.

        It is news that the node has caught up after a start, and a shortfall that has changed. Once the node was
        ready, a shortfall is news only after the next start.
        said: the news that were returned last.
        """
        now = sum(unit.starts for unit in self.units), self.shortfall
        return now if self.has_caught_up and said not in ((now[0], None), now) else None

    def _check_refusal(self) -> None:
        for process in self._others:
            if process.heartbeat.get("refused"):
                raise NodeRefusedError(str(process.heartbeat["refused"]))
