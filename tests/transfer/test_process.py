"""The process itself, started by a supervisor beside a made-up unit and a made-up leader's process."""

import contextlib
import errno
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from railgun.cluster.silence import UNIT_SILENT_S
from railgun.config.loading import settings_of
from railgun.config.settings import Settings
from railgun.messaging.errors import TransportFailedError
from railgun.messaging.kafka.errors import ClientErrors
from railgun.node.identity import keep_catalogue
from railgun.node.relay import Fetch, Received, Serving, SnapshotMade
from railgun.node.supervisor import Supervisor
from railgun.transfer import process as process_module
from railgun.transfer.donor import DonorAddress, DonorError
from railgun.transfer.fetch import TaskFetch
from railgun.transfer.process import TransferProcess
from railgun.transfer.serving import CONNECTIONS_MAX
from tests.broker.lost_brokers import lose_brokers
from tests.broker.own_topics import own_prefix
from tests.certificates import Authority
from tests.transfer.made_up import CLUSTER, FORMATS, TASK, content, described, fetch_of, files_in, order
from tests.unit.local_units import awaited
from tests.unit.processes import write_config

_FILES = content()
_HUNG_AFTER_S = 30.0

# A unit that makes snapshots of the folder in its first argument, once there is no `hold` beside it, and orders what
# is in its second. It tells its node each second that it does not hang.
_UNIT = """
import shutil, sys, threading, time
from pathlib import Path
import msgspec
from railgun.node.relay import Fetch, MakeSnapshot, SnapshotMade, received, sent
made, orders, told = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
print('{"ready": true}', flush=True)
def say(message):
    sys.stdout.buffer.write(sent("transfer", message)); sys.stdout.flush()
def ask():
    while True:
        print('{"ready": true}', flush=True)
        if orders.is_file():
            say(msgspec.json.decode(orders.read_bytes(), type=Fetch))
        time.sleep(0.5)
threading.Thread(target=ask, daemon=True).start()
for line in sys.stdin.buffer:
    found = received(line)
    if found is None:
        continue
    if isinstance(found.message, MakeSnapshot):
        (made.parent / "ordered").write_text(found.message.name)
        while (made.parent / "hold").exists():
            time.sleep(0.05)
        shutil.copytree(made, made.parent / "snapshots" / found.message.name)
        say(SnapshotMade(found.message.name))
        (made.parent / "finished").touch()
    else:
        with told.open("ab") as to:
            to.write(line)
"""
_LEADER = """
import sys
from pathlib import Path
from railgun.node.relay import received
print('{"ready": true}', flush=True)
for line in sys.stdin.buffer:
    found = received(line)
    if found is not None:
        Path(sys.argv[1] + ".new").write_bytes(line)
        Path(sys.argv[1] + ".new").rename(sys.argv[1])
"""


class _Node:
    def __init__(self, folder: Path, config: Path | None) -> None:
        self.folder, self.serving_file = folder, folder / "serving"
        made = folder / "made"
        for path, body in _FILES.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(body)
        (made / "snapshot.json").write_bytes(msgspec.json.encode(described()))
        (folder / "node.lock").touch()
        self.orders, self.told = folder / "orders", folder / "told"
        unit = [sys.executable, "-c", _UNIT, str(made), str(self.orders), str(self.told)]
        transfer = [sys.executable, "-m", "railgun.transfer", "--node-folder", str(folder), "--units", "1"]
        configured = [] if config is None else ["--config", str(config)]
        self.supervisor = Supervisor(
            folder,
            [unit],
            leader=[sys.executable, "-c", _LEADER, str(self.serving_file)],
            transfer=[*transfer, "--release", "1.0", "--broker", "127.0.0.1:1", *configured],
            hung_after_s=_HUNG_AFTER_S,
        )

    def said(self) -> Serving:
        """What the process has said last of where it serves."""
        awaited(self.serving_file.is_file)
        found = msgspec.json.decode(self.serving_file.read_bytes(), type=Received).message
        assert isinstance(found, Serving)
        return found

    def serving(self) -> DonorAddress:
        found = self.said()
        assert found.reason == ""
        return DonorAddress(found.address, found.key)


@contextmanager
def _running(folder: Path, config: Path | None = None) -> Iterator[_Node]:
    node, stopped, ended = _Node(folder, config), threading.Event(), list[bool]()
    running = threading.Thread(target=lambda: ended.append(node.supervisor.run(stopped)))
    running.start()
    try:
        awaited(lambda: node.supervisor.has_caught_up)
        keep_catalogue(folder, CLUSTER.catalogue)
        yield node
    finally:
        stopped.set()
        running.join()
    assert ended == [True]


def _fetch(folder: Path, address: DonorAddress) -> TaskFetch:
    return fetch_of(order(folder, "n0"), {"n0": address})


def test_it_serves_what_a_unit_makes_and_is_started_again_with_another_key(tmp_path: Path) -> None:
    with _running(tmp_path / "data") as node:
        first = node.serving()
        assert first.url.startswith("http://127.0.0.1:")
        assert _fetch(tmp_path / "one", first).run().error == ""
        fetched = files_in(tmp_path / "one.fetching")
        del fetched["FETCHED"]
        assert fetched == _FILES
        transfer = node.supervisor.transfer
        assert transfer is not None
        size = sum(map(len, _FILES.values()))
        awaited(lambda: transfer.heartbeat.get("transfer", {}).get("served_bytes_total") == size)
        assert transfer.pid is not None
        os.kill(transfer.pid, signal.SIGKILL)
        awaited(lambda: transfer.starts == 2)
        assert node.supervisor.waits_for is None
        awaited(lambda: node.serving() != first)
        assert _fetch(tmp_path / "two", node.serving()).run().error == ""
        # What the process that was killed has left was deleted.
        assert len(list((tmp_path / "data" / "snapshots").iterdir())) == 1


def test_one_that_hangs_is_killed_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(f"{__name__}._HUNG_AFTER_S", 6.0)
    with _running(tmp_path / "data") as node:
        first, transfer = node.serving(), node.supervisor.transfer
        assert transfer is not None
        # One that has nothing to do says so.
        time.sleep(UNIT_SILENT_S + 1.0)
        assert transfer.hang is None
        assert transfer.pid is not None
        os.kill(transfer.pid, signal.SIGSTOP)
        awaited(lambda: transfer.starts == 2, 30.0)
        assert node.supervisor.waits_for is None
        awaited(lambda: node.serving() != first)
        assert _fetch(tmp_path / "one", node.serving()).run().error == ""
    assert "the transfer process has said nothing for 5 s; after 6 s it is killed" in caplog.text


def test_a_snapshot_that_a_killed_process_has_ordered_is_deleted(tmp_path: Path) -> None:
    with _running(tmp_path / "data") as node:
        first, transfer = node.serving(), node.supervisor.transfer
        assert transfer is not None
        assert transfer.pid is not None
        (node.folder / "hold").touch()
        fetch = _fetch(tmp_path / "one", first)
        asking = threading.Thread(target=fetch.run)
        asking.start()
        awaited((node.folder / "ordered").is_file)
        os.kill(transfer.pid, signal.SIGKILL)
        asking.join()
        awaited(lambda: node.serving() != first)
        (node.folder / "hold").unlink()
        awaited((node.folder / "finished").is_file)
        awaited(lambda: not list((node.folder / "snapshots").iterdir()))


def test_a_thousand_silent_clients_harm_no_fetch(tmp_path: Path) -> None:
    with _running(tmp_path / "data") as node:
        address, transfer = node.serving(), node.supervisor.transfer
        assert transfer is not None
        fds = Path(f"/proc/{transfer.pid}/fd")
        before, where = len(list(fds.iterdir())), urlsplit(address.url)
        with contextlib.ExitStack() as stack:
            for _ in range(1_000):
                stack.enter_context(socket.create_connection((where.hostname, where.port), 10))
            assert len(list(fds.iterdir())) <= before + CONNECTIONS_MAX + 5
            # The silent ones are closed after a while.
            awaited(lambda: _fetch(tmp_path / "one", address).run().error == "")
        assert transfer.starts == 1


def test_a_unit_that_orders_is_told_how_it_ends(tmp_path: Path) -> None:
    with _running(tmp_path / "data") as node:
        _order_in_vain(node, tmp_path)
        awaited(
            lambda: node.told.is_file() and b"no donor has given it: none is known" in node.told.read_bytes()
        )


def _order_in_vain(node: _Node, tmp_path: Path) -> None:
    """Have the unit order a fetch that ends at once."""
    ordered = Fetch(TASK, [], "topic", 0, FORMATS, str(tmp_path / "data" / "task"))
    node.orders.write_bytes(msgspec.json.encode(ordered))


def test_it_fetches_while_its_port_is_in_use_and_serves_once_it_is_free(tmp_path: Path) -> None:
    config = tmp_path / "railgun.toml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = "{}:{}".format(*taken.getsockname())
        config.write_text(f'[cluster]\ntransfer = "{where}"\n')
        with _running(tmp_path / "data", config) as node:
            assert "the port cannot be opened: " in node.said().reason
            assert where in node.said().reason
            _order_in_vain(node, tmp_path)
            awaited(lambda: node.told.is_file() and b"none is known" in node.told.read_bytes())
            taken.close()
            awaited(lambda: node.said().address == f"http://{where}")
            transfer = node.supervisor.transfer
            assert transfer is not None
            assert transfer.starts == 1
            assert _fetch(tmp_path / "one", node.serving()).run().error == ""


def test_a_certificate_that_cannot_be_used_is_read_again(tmp_path: Path) -> None:
    pair = Authority(tmp_path / "ca").pair()
    cluster = replace(
        Settings().cluster, transfer_certificate=str(pair.certificate), transfer_key=str(pair.key)
    )
    body = pair.certificate.read_bytes()
    pair.certificate.write_text("not a certificate")
    listening, tls = process_module._opened(cluster, tmp_path)
    assert (listening.socket, listening.url, tls) == (None, "", None)
    assert listening.reason.startswith("the certificate cannot be used: ")
    pair.certificate.write_bytes(body)
    listening, tls = process_module._opened(cluster, tmp_path)
    assert listening.socket is not None
    listening.socket.close()
    assert listening.url.startswith("https://127.0.0.1:")
    assert tls is not None


def test_where_files_cannot_be_linked_nothing_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other nodes must not count on a node that can make no snapshot."""

    def on_another_disk(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "hardlink_to", on_another_disk)
        listening, _ = process_module._opened(Settings().cluster, tmp_path)
    assert (listening.socket, listening.url) == (None, "")
    assert listening.reason == (
        f"no file in {tmp_path}/tasks can be linked into {tmp_path}/snapshots (Invalid cross-device link): both have "
        "to be on one file system that has hard links"
    )
    listening, _ = process_module._opened(Settings().cluster, tmp_path)
    assert listening.socket is not None
    listening.socket.close()
    assert files_in(tmp_path) == {}


def test_a_process_takes_the_messages_of_its_node(tmp_path: Path) -> None:
    sent = list[object]()
    transfer = TransferProcess(
        Settings(), tmp_path, "1.0", lambda to, message: sent.append(message), sent.append
    )
    # A message for a server that does not run yet, and one that is for others.
    transfer.take(Received("unit 0", SnapshotMade("ab")))
    transfer.take(Received("unit 0", Serving()))
    assert sent == []


def test_it_ends_if_its_client_has_lost_the_brokers_for_good(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would know no new address of a node ever after."""

    lose_brokers(monkeypatch)
    config = write_config(tmp_path, kafka, own_prefix("t"))
    sent, stopped = list[object](), threading.Event()
    transfer = TransferProcess(
        settings_of(str(config), None), tmp_path, "1.0", lambda to, message: sent.append(message), sent.append
    )
    complaining = threading.Thread(target=_complain, args=[monkeypatch, sent, stopped])
    complaining.start()
    try:
        with pytest.raises(TransportFailedError, match="a client has lost the brokers for good"):
            transfer.run(stopped)
    finally:
        stopped.set()
        complaining.join()


def _complain(monkeypatch: pytest.MonkeyPatch, sent: list[object], stopped: threading.Event) -> None:
    """Have a client complain, once it runs."""
    while not stopped.wait(0.1):
        if sent:
            monkeypatch.setattr(ClientErrors, "reports", ClientErrors.reports + 1)


def test_new_certificates_are_taken(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    pair, later = authority.pair(), authority.pair("later.example")
    cluster = replace(
        Settings().cluster, transfer_certificate=str(pair.certificate), transfer_key=str(pair.key)
    )
    tls = process_module._own_tls(cluster)
    renewal = process_module._Renewal(cluster, tls)
    loaded = list[object]()
    tls_seen = _Seen(tls, loaded)
    renewal._tls = tls_seen  # type: ignore[assignment]
    renewal.look()
    assert loaded == []
    time.sleep(0.01)
    pair.key.write_bytes(later.key.read_bytes())
    renewal.look()
    # The key alone is no pair.
    assert loaded == []
    pair.certificate.write_bytes(later.certificate.read_bytes())
    renewal.look()
    renewal.look()
    assert loaded == [(str(pair.certificate), str(pair.key))]


class _Seen:
    def __init__(self, tls: ssl.SSLContext, loaded: list[object]) -> None:
        self._tls, self._loaded = tls, loaded

    def load_cert_chain(self, *files: str) -> None:
        self._tls.load_cert_chain(*files)
        self._loaded.append(files)


def test_a_file_of_cas_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    cluster, empty = Settings().cluster, tmp_path / "empty.pem"
    empty.write_text("")
    for file, why in (
        (tmp_path / "none.pem", "No such file or directory"),
        (empty, "it holds no certificates"),
    ):
        with pytest.raises(
            DonorError, match=f"cluster.transfer_ca: {file}: {why}; name a file of CAs in PEM"
        ):
            process_module._donors_tls(replace(cluster, transfer_ca=str(file)))


def test_a_file_of_cas_that_cannot_be_used_is_warned_of_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before anything has to be fetched. It may be there by then."""
    cluster = replace(Settings().cluster, transfer_ca=str(tmp_path / "none.pem"), broker="127.0.0.1:1")
    for found, warned in ((cluster, True), (replace(cluster, transfer_ca="none"), False)):
        caplog.clear()
        stopped = threading.Event()
        stopped.set()
        TransferProcess(replace(Settings(), cluster=found), tmp_path, "1.0", lambda *_: None, id).run(stopped)
        text = f"nothing can be fetched from nodes that speak TLS: cluster.transfer_ca: {tmp_path}/none.pem: No such"
        assert any(each.startswith(text) for each in caplog.messages) is warned
