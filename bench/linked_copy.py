"""Fetches a task's data into the folder of a copy that has nearly all of it, and counts which segments move."""

import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from socket import create_server
from tempfile import TemporaryDirectory

from bench.children import ChildFailedError
from bench.unit_cases import MIB, Workload
from bench.unit_task import WarmTask
from railgun.host.snapshot import FORMATS
from railgun.host.snapshot_making import SnapshotMaking
from railgun.node.relay import Fetch, MakeSnapshot
from railgun.transfer.donor import DonorAddress
from railgun.transfer.fetch import FetchSetting, TaskFetch
from railgun.transfer.figures import Figures
from railgun.transfer.keys import new_key
from railgun.transfer.limits import Rate
from railgun.transfer.manifest import ClusterId
from railgun.transfer.server import Application
from railgun.transfer.serving import DonorServer
from railgun.transfer.snapshots import Snapshots
from reservoir.thread_executor import ThreadExecutor

SEGMENTS_LEAST = 200
_SMALL = {"chunk_events": 1_024, "segment_bytes": MIB // 4}
_MISSING = 100
_CLUSTER, _NODE = ClusterId("", "railgun"), "node-1"
_STREAM_CREATED = 1


@dataclass(frozen=True, slots=True)
class LinkedCopy:
    """What a fetch has moved. segments: of the donor.  segment_bytes: in them.  moved_bytes: of these."""

    segments: int
    segment_bytes: int
    moved_bytes: int


def linked_copy(workload: Workload, events: int) -> LinkedCopy:
    """Make two copies of one task by themselves, of which one has all but one event in a hundred, and fetch the other.

    events: of the whole copy. Raises ChildFailedError if there are too few segments, or the fetch fails.
    """
    small = replace(workload, limits={**workload.limits, **_SMALL})
    with TemporaryDirectory(prefix="railgun-bench-linked-") as made:
        folder = Path(made)
        _fill(small, events - events // _MISSING, folder / "target", checkpoints=7)
        _fill(small, events, folder / "snapshot", checkpoints=3)
        segments = [path.stat().st_size for path in (folder / "snapshot" / "reservoir").glob("*.seg")]
        if len(segments) < SEGMENTS_LEAST:
            raise ChildFailedError(f"{len(segments)} segments are too few to say much")
        with _served(folder) as address:
            task = f"payments.{_STREAM_CREATED}/card/0"
            order = Fetch(task, [(_NODE, 0)], "", 0, FORMATS, str(folder / "target"))
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            setting = FetchSetting(
                lambda node: address, lambda nodes: False, lambda: _CLUSTER, lambda: tls, "bench"
            )
            ended = TaskFetch(order, setting).run()
        if ended.error:
            raise ChildFailedError(ended.error)
        found = [path.stat() for path in (folder / "target.fetching" / "reservoir").glob("*.seg")]
        # What the target had is linked: it has a second name in the target's own folder.
        moved = sum(each.st_size for each in found if each.st_nlink == 1)
        return LinkedCopy(len(segments), sum(segments), moved)


def _fill(workload: Workload, events: int, to: Path, checkpoints: int) -> None:
    """Make a task of so many events, with as many checkpoints on the way, and put a snapshot of it into a folder."""
    rig, executor = WarmTask(workload), ThreadExecutor()
    try:
        for records in rig.records.take(events):
            step = max(1, len(records) // checkpoints)
            for first in range(0, len(records), step):
                rig.feed(records.part(first, min(len(records), first + step)), workload.batch)
                rig.task.checkpoints.take()
        making = SnapshotMaking(executor, _STREAM_CREATED)
        asked = making.begin(to)
        while not asked.done():
            rig.task.work()
            making.step(rig.task)
        asked.result()
    finally:
        rig.close()


@contextmanager
def _served(folder: Path) -> Iterator[DonorAddress]:
    """Serve the snapshot of a folder while the block runs."""

    def make(unit: int, order: MakeSnapshot) -> None:
        threading.Thread(target=put, args=[order.name]).start()

    def put(name: str) -> None:
        shutil.move(folder / "snapshot", folder / "snapshots" / name)
        server.call(snapshots.made, name, "")

    snapshots, key = Snapshots(folder, make, lambda: _CLUSTER), new_key()
    snapshots.begin()
    listening = create_server(("127.0.0.1", 0))
    address = DonorAddress(f"http://127.0.0.1:{listening.getsockname()[1]}", key)
    server = DonorServer(listening, Application(snapshots, key, Rate(0), Figures()), snapshots, None)
    with server:
        yield address
