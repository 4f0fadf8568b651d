"""Exports what a task has accepted up to a record of its log. The task goes on while the files are written.

`TaskHost` begins it at the record that begins a deepening, which gives a live stream older events than its log has:
the stream's tasks are built again from these events and the older ones. docs/decisions/0012 describes the purpose, and
railgun/history/FORMAT.md the files.
"""

import logging
import shutil
from functools import partial
from pathlib import Path

from railgun.catalog.changes import BeginDeepening
from railgun.history.accepted_events import SnapshotExport
from railgun.history.durable_files import make_durable
from railgun.history.plan_file import OWN, OWN_FILE, history_of, write_own
from railgun.history.request_files import REQUEST, read_request
from railgun.host.host_state import OF_A_SUCCESSOR, one_line
from railgun.host.place import Place
from railgun.task.processor import TaskProcessor
from reservoir.executor import Lane

_log = logging.getLogger("railgun.unit")


class AcceptedEventsExport:
    """The accepted-events export of one task. One thread uses it.

    copy: distinguishes the copies of one task that share a folder of built history.
    """

    def __init__(self, place: Place, copy: str, lane: Lane) -> None:
        self._place, self._copy, self._lane = place, copy, lane
        self._base = place.history.parents[2]
        self._folder = self._base / OWN / place.history.parent.name / place.history.name
        self._newest = ""
        self._failure: tuple[str, str] | None = None

    @property
    def failure(self) -> tuple[str, str] | None:
        """The id of the history that was requested, and why the export for it failed; None if it did not fail."""
        return self._failure

    def begin(self, task: TaskProcessor, change: BeginDeepening) -> None:
        """Begin the export that a control record requests. The task stands at the position of that record."""
        self._failure, self._newest = None, change.history
        try:
            request = read_request(self._base / REQUEST)
            if request is None or request.history != change.history:
                # The request was withdrawn.
                return
            if history_of(self._folder / OWN_FILE) == change.history:
                return
            made = self._folder.with_name(f"{self._folder.name}.{change.history}{self._copy}")
            shutil.rmtree(made, ignore_errors=True)
            freezing = SnapshotExport(task, made)
        except OF_A_SUCCESSOR as error:
            self._failed(change.history, error)
            return
        self._lane.submit(partial(self._write, freezing, made, change.history))

    def forget_failure(self) -> None:
        """Forget a failure once the request is gone, or once another copy of the task has made the export. The host
        calls this now and then.
        """
        if self._failure is None:
            return
        is_made = history_of(self._folder / OWN_FILE) == self._failure[0]
        if is_made or not (self._base / REQUEST).is_file():
            self._failure = None

    def _write(self, freezing: SnapshotExport, made: Path, history: str) -> None:
        try:
            write_own(made, history, freezing.finish())
            if history_of(self._folder / OWN_FILE) == history:
                # Another copy of the task has finished its export first, with the same content.
                shutil.rmtree(made, ignore_errors=True)
                return
            shutil.rmtree(self._folder, ignore_errors=True)
            made.rename(self._folder)
            make_durable(self._folder.parent)
        except Exception as error:  # noqa: BLE001 - whoever waits for it is told
            shutil.rmtree(made, ignore_errors=True)
            self._failed(history, error)

    def _failed(self, history: str, error: Exception) -> None:
        """Note an error. The task continues: if it stopped here, every start would stop again at the same record."""
        if history == self._newest:
            self._failure = history, one_line(error)
        _log.error("%s cannot be put aside: %s", self._place.identity, error)
