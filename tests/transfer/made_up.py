"""Made-up snapshots, a donor that serves them over loopback, and a target that fetches them. No engine is needed."""

import random
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from railgun.node.relay import Fetch, Fetched, MakeSnapshot
from railgun.task.snapshot_file import SNAPSHOT, SnapshotFile
from railgun.transfer.donor import DonorAddress
from railgun.transfer.fetch import FetchSetting, TaskFetch
from railgun.transfer.figures import Figures
from railgun.transfer.keys import new_key
from railgun.transfer.limits import Rate
from railgun.transfer.manifest import ClusterId
from railgun.transfer.server import Application
from railgun.transfer.serving import DonorServer
from railgun.transfer.snapshots import Snapshots

TASK = "payments.0/card/3"
CLUSTER = ClusterId("catalogue", "railgun")
FORMATS = {"commit": 3, "values": 2}
RELEASE = "1.0"
POSITION = 700
_GB = 1 << 30


def described(**other: object) -> SnapshotFile:
    """What a snapshot of TASK is."""
    found = SnapshotFile(
        stream="payments",
        created=0,
        partitioner="card",
        partition=3,
        topic_id="topic",
        position=POSITION,
        leader_epoch=1,
        epoch=9,
        history="",
        release=RELEASE,
        arrow="20",
        formats=FORMATS,
    )
    return msgspec.structs.replace(found, **other)


def content(seed: int = 1, sizes: int = 60_000) -> dict[str, bytes]:
    """Files of a task: by their path in its folder."""
    drawn = random.Random(seed)
    return {
        "reservoir/000000000001.seg": drawn.randbytes(2 * sizes),
        "reservoir/000000000002.seg": drawn.randbytes(sizes),
        "reservoir/000000000003.seg": drawn.randbytes(sizes // 3),
        "reservoir/000000000001.open": drawn.randbytes(sizes // 5),
        "state/000012.sst": drawn.randbytes(sizes),
        "state/CURRENT": b"MANIFEST-000001\n",
        "state/end.mark": b"",
    }


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    for path, body in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body)


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


class MadeUpDonor:
    """A donor's server with a made-up unit. It counts the snapshots that were ordered.

    what: what the next snapshots are.
    on_order: is called with the name of each snapshot that is ordered.
    """

    def __init__(
        self,
        data: Path,
        files: dict[str, bytes],
        *,
        what: SnapshotFile | None = None,
        cluster: ClusterId = CLUSTER,
        rate: int = 0,
        tls: ssl.SSLContext | None = None,
        error: str = "",
        wrap: Callable[[Application], Application] = lambda application: application,
    ) -> None:
        self.key, self.figures, self.orders = new_key(), Figures(), list[MakeSnapshot]()
        self._data, self._files, self.what, self._error = data, files, what or described(), error
        self.on_order: Callable[[str], object] = lambda name: None
        self.snapshots = Snapshots(data, self._make, lambda: cluster)
        self.snapshots.begin()
        listening = socket.create_server(("127.0.0.1", 0))
        scheme = "http" if tls is None else "https"
        self.address = DonorAddress(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", self.key)
        application = wrap(Application(self.snapshots, self.key, Rate(rate), self.figures))
        self.server = DonorServer(listening, application, self.snapshots, tls)

    def _make(self, unit: int, order: MakeSnapshot) -> None:
        self.orders.append(order)
        threading.Thread(target=self._write, args=[order]).start()

    def _write(self, order: MakeSnapshot) -> None:
        self.on_order(order.name)
        if not self._error:
            self.write(order.name)
        self.server.call(self.snapshots.made, order.name, self._error)

    def write(self, name: str) -> None:
        """Write a snapshot, also one that was not ordered."""
        folder = self.folder / name
        write_files(folder, self._files)
        (folder / "new").write_bytes(msgspec.json.encode(self.what))
        (folder / "new").rename(folder / SNAPSHOT)

    @property
    def folder(self) -> Path:
        """The folder of the snapshots."""
        return self._data / "snapshots"

    @property
    def folders(self) -> list[Path]:
        """The folders of the snapshots that are there."""
        return list(self.folder.iterdir())


@contextmanager
def donors(*several: MadeUpDonor) -> Iterator[dict[str, DonorAddress]]:
    """Serve while the block runs. Yields the addresses, by the names n0, n1 and so on."""
    begun = []
    try:
        for each in several:
            each.server.__enter__()
            begun.append(each)
        yield {f"n{number}": each.address for number, each in enumerate(several)}
    finally:
        for each in begun:
            each.server.__exit__()


def order(folder: Path, *nodes: str, **other: object) -> Fetch:
    found = Fetch(TASK, [(node, 0) for node in nodes], "topic", 100, FORMATS, str(folder))
    return msgspec.structs.replace(found, **other)


def fetch_of(
    ordered: Fetch,
    addresses: dict[str, DonorAddress],
    *,
    tls: ssl.SSLContext | None = None,
    free_bytes: Callable[[Path], int] = lambda folder: 100 * _GB,
) -> TaskFetch:
    context = tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    setting = FetchSetting(
        addresses.get,
        lambda nodes: all(addresses.get(each, DonorAddress("", "")).url == "" for each in nodes),
        lambda: CLUSTER,
        lambda: context,
        RELEASE,
        Figures(),
        free_bytes,
    )
    return TaskFetch(ordered, setting)


def fetched(folder: Path, addresses: dict[str, DonorAddress], *nodes: str) -> Fetched:
    """Fetch TASK from the nodes, in this order."""
    return fetch_of(order(folder, *nodes), addresses).run()


def forget(folder: Path) -> None:
    """Delete what was fetched."""
    shutil.rmtree(folder.with_name(folder.name + ".fetching"), ignore_errors=True)
