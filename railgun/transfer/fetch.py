"""Fetches the data of one task: takes donors (nodes with a copy of it) in order until one has given all, verified.

`Fetches` runs each in a thread. It asks donors over HTTP and writes a folder beside the task's.
"""

import logging
import secrets
import shutil
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from railgun.node.relay import Fetch, Fetched, Fetching
from railgun.transfer.donor import Donor, DonorAddress, DonorBusyError, DonorError
from railgun.transfer.figures import Figures
from railgun.transfer.manifest import ClusterId, Manifest, ManifestError, ManifestFile, check_manifest
from railgun.transfer.target import DamagedError, NoRoomError, TargetFolder
from railgun.wording import error_text

BUSY_S = 2.0
"""The pause after which donors that served others are asked again."""

# A donor deletes a snapshot that is not read, so it is asked for the manifest this often while files are read here.
_READ_S = 5.0
_ATTEMPTS = 2

_log = logging.getLogger("railgun.transfer")


class StoppedError(Exception):
    """The fetch was taken back, or the process stops."""


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True)
class FetchSetting:
    """The parts of a node that all its fetches need.

    donors: returns where a node serves snapshots; None if it is not known. Raises DonorBusyError if that
        is not known yet.
    serve_none: whether it is known that none of these nodes serves snapshots.
    cluster: returns the id of this node's cluster.
    tls: returns what verifies donors.
    release: the release of this program.
    figures: counts fetches and their bytes for monitoring.
    free_bytes: returns how much of a folder's disk is free.
    """

    donors: Callable[[str], DonorAddress | None]
    serve_none: Callable[[Iterable[str]], bool]
    cluster: Callable[[], ClusterId]
    tls: Callable[[], ssl.SSLContext]
    release: str
    figures: Figures = field(default_factory=Figures)
    free_bytes: Callable[[Path], int] = _free_bytes


class TaskFetch:
    """The fetch of a task's data. One thread runs it; any thread may read `progress`, and call `stop`."""

    def __init__(self, order: Fetch, setting: FetchSetting) -> None:
        self.order, self._setting = order, setting
        self.progress = Fetching(order.task)
        self._stopped = threading.Event()
        self._target = TargetFolder(Path(order.folder), self._check, setting.free_bytes)
        self._moved = self._hashed = 0

    @property
    def is_stopped(self) -> bool:
        """Whether the fetch was told to end."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Let the fetch end soon. The data that was fetched stays."""
        self._stopped.set()

    def run(self) -> Fetched:
        """Return how the fetch has ended, which the unit logs. Raises StoppedError."""
        task = self.order.task
        try:
            return self._already() or self._from_any()
        except NoRoomError as error:
            # The node's tasks need the room more.
            self._target.delete()
            return Fetched(task, str(error))
        except OSError as error:
            return Fetched(
                task, error_text(error) if error.filename else f"{self._target.folder}: {error_text(error)}"
            )
        finally:
            self._target.close()

    def _already(self) -> Fetched | None:
        """Return the outcome of an earlier fetch that is complete, but of which the unit has not heard; else None."""
        found = self._target.verified()
        if found is None:
            return None
        try:
            self._check_manifest(found)
        except ManifestError:
            return None
        return Fetched(self.order.task, "", found.snapshot.position, "", 0, found.size)

    def _from_any(self) -> Fetched:
        task, left, errors = self.order.task, list(self.order.donors), list[str]()
        while left:
            busy = []
            for node, unit in left:
                name = f"{node}/{unit}"
                try:
                    done = self._from(node, unit)
                except DonorBusyError:
                    busy.append((node, unit))
                except (DonorError, ManifestError, DamagedError) as error:
                    errors.append(f"{name}: {error}")
                else:
                    # If no donor gives it, the unit logs why.
                    if errors:
                        _log.warning("the data of %s cannot be fetched from %s", task, "; ".join(errors))
                    return done
            left = busy
            if left:
                self.progress = Fetching(task)
                self._stopped.wait(BUSY_S)
                self._check()
        return Fetched(task, "no donor has given it: " + ("; ".join(errors) or "none is known"))

    def _from(self, node: str, unit: int) -> Fetched:
        """Fetch everything from one donor. Raises DonorError, DonorBusyError, ManifestError, DamagedError and more."""
        order, target, name = self.order, self._target, f"{node}/{unit}"
        address = self._setting.donors(node)
        if address is None or not address.url:
            raise DonorError("it serves no snapshots")
        self._hashed = 0
        with Donor(address, secrets.token_hex(16), self._setting.tls(), partial(self._wait, name)) as donor:
            snapshot = donor.snapshot(unit, order.task, order.log_start)
            manifest = donor.manifest(snapshot)
            self._check_manifest(manifest)
            missing, there = target.prepare(manifest, self._keeping(donor, snapshot, name))
            total, begun = sum(each.file.size for each in missing), sum(each.begin for each in missing)
            self.progress = Fetching(order.task, name, begun, total)
            for each in missing:
                self._fetch_file(donor, snapshot, each.file)
            target.finish(manifest)
        return Fetched(order.task, "", manifest.snapshot.position, name, self._moved, there)

    def _fetch_file(self, donor: Donor, snapshot: str, file: ManifestFile) -> None:
        """Fetch a file, and once more if it is damaged. Raises DamagedError and more."""
        for attempt in range(_ATTEMPTS):
            before = self.progress
            try:
                for size in self._target.take(file, lambda at: donor.content(snapshot, file.path, at)):
                    self._note(size)
                return
            except DamagedError as error:
                if attempt + 1 == _ATTEMPTS:
                    raise
                _log.warning("the data of %s is damaged: %s, and is fetched again", self.order.task, error)
                self.progress = before

    def _note(self, size: int) -> None:
        now = self.progress
        self.progress = Fetching(now.task, now.donor, now.fetched + size, now.total)
        self._moved += size
        self._setting.figures.add("fetched_bytes_total", size)

    def _wait(self, name: str, hashed: int) -> None:
        """Note how much a donor has hashed. name: the name of the copy that gives the data."""
        self._check()
        self._hashed = hashed
        self.progress = Fetching(self.order.task, name, hashed=hashed)

    def _keeping(self, donor: Donor, snapshot: str, name: str) -> Callable[[int], None]:
        """Return a function that notes what is hashed here. The donor keeps the snapshot meanwhile."""
        asked_s = time.monotonic()

        def keep(size: int) -> None:
            nonlocal asked_s
            self._wait(name, self._hashed + size)
            if time.monotonic() - asked_s >= _READ_S:
                donor.manifest(snapshot)
                asked_s = time.monotonic()

        return keep

    def _check_manifest(self, manifest: Manifest) -> None:
        check_manifest(manifest, self.order, self._setting.cluster(), self._setting.release)

    def _check(self) -> None:
        if self._stopped.is_set():
            raise StoppedError
