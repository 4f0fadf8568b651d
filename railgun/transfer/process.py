"""Runs the transfer process of a node: serves snapshots, and fetches them as units order.

`python -m railgun.transfer` calls it.
"""

import contextlib
import logging
import math
import os
import ssl
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from railgun.access.certificate_files import CertificateFiles, read_certificates
from railgun.access.tls import CertificateError
from railgun.config.settings import NONE, ClusterSettings, Settings
from railgun.messaging.errors import TransportError, TransportFailedError
from railgun.messaging.kafka.configured import kafka_settings
from railgun.messaging.kafka.watchdog import ClientWatchdog
from railgun.node.identity import kept_catalogue
from railgun.node.relay import (
    LEADER,
    Fetch,
    MakeSnapshot,
    Message,
    Received,
    Serving,
    SnapshotMade,
    StopFetch,
    unit_address,
)
from railgun.registry.topics import Topics
from railgun.task.errors import SnapshotError
from railgun.transfer.address import Listening, listen
from railgun.transfer.donor import DonorError
from railgun.transfer.fetch import FetchSetting
from railgun.transfer.fetches import Fetches
from railgun.transfer.figures import Figures
from railgun.transfer.keys import new_key
from railgun.transfer.limits import Rate
from railgun.transfer.manifest import ClusterId
from railgun.transfer.nodes import NodeAddresses, follow_nodes
from railgun.transfer.server import Application
from railgun.transfer.serving import DonorServer
from railgun.transfer.snapshots import Snapshots, try_link
from railgun.wording import error_text

# An order waits for the next step, and so does the unit for the end of its fetch.
_STEP_S = 0.05
# A process that tells its node nothing for long hangs, and is killed.
_BEAT_S = 1.0
# The leader's process may have been started again, and know nothing.
_SERVING_S = 3.0
_CERTIFICATES_S = 60.0
# The port may be free then, the certificate renewed, or the name of the broker known.
_SERVE_AGAIN_S = 5.0

_log = logging.getLogger("railgun.transfer")


class TransferProcess:
    """The parts of the process, and the messages between them and the node's other processes.

    data: the node's data folder.
    release: the release of this program.
    send: sends a message to another process of the node.
    tell: tells the node the figures, and that the process does not hang.
    """

    def __init__(
        self,
        settings: Settings,
        data: Path,
        release: str,
        send: Callable[[str, Message], object],
        tell: Callable[[dict[str, int]], object],
    ) -> None:
        self._settings, self._data, self._send, self._tell = settings, data, send, tell
        self._figures, self._key, self._addresses = Figures(), new_key(), NodeAddresses()
        cluster = settings.cluster
        self._snapshots = Snapshots(data, self._ask_unit, self._cluster)
        tls = partial(_donors_tls, cluster)
        self._fetches = Fetches(
            FetchSetting(
                self._addresses.of, self._addresses.serve_none, self._cluster, tls, release, self._figures
            ),
            send,
        )
        self._server: DonorServer | None = None
        self._serving = Serving()

    def take(self, received: Received) -> None:
        """Take a message. Any thread may call this."""
        match received.message:
            case Fetch() as order:
                self._fetches.order(received.sender, order)
            case StopFetch() as order:
                self._fetches.stop(received.sender, order)
            case SnapshotMade(name, error) if self._server is not None:
                self._server.call(self._snapshots.made, name, error)
            case _:
                pass

    def run(self, stopped: threading.Event) -> None:
        """Serve and fetch until asked to stop. It fetches also while it cannot serve.

        Raises OSError, and TransportFailedError if the client that reads the addresses of other nodes has lost its
        brokers for good.
        """
        self._snapshots.begin()
        _warn_of_cas(self._settings.cluster)
        catalog = Topics(self._settings.cluster.topic_prefix).catalog
        watchdog = ClientWatchdog(kafka_settings(self._settings), catalog, on_lost=stopped.set)
        with contextlib.ExitStack() as running:
            following = threading.Thread(target=self._follow, args=[stopped], name="nodes", daemon=True)
            following.start()
            watchdog.start()
            running.callback(watchdog.stop)
            running.callback(self._fetches.close)
            self._step_until(stopped, running)
        if watchdog.reason is not None:
            raise TransportFailedError(self._settings.cluster.broker, watchdog.reason, "Fetches begin again")

    def _serve(self, running: contextlib.ExitStack) -> "_Renewal":
        """Start the server, if the folder, the port and the certificate can be used. Returns the taker of
        new certificates.
        """
        cluster = self._settings.cluster
        listening, tls = _opened(cluster, self._data)
        serving = Serving(listening.url, self._key, listening.reason)
        if listening.socket is not None:
            rate = Rate(cluster.transfer_rate_bytes)
            application = Application(self._snapshots, self._key, rate, self._figures)
            self._server = DonorServer(listening.socket, application, self._snapshots, tls)
            running.enter_context(self._server)
            _log.info("snapshots are served to other nodes at %s", listening.url)
        elif serving != self._serving:
            _log.warning("no snapshots are served to other nodes: %s", listening.reason)
        self._serving = serving
        return _Renewal(cluster, tls)

    def _step_until(self, stopped: threading.Event, running: contextlib.ExitStack) -> None:
        said_s = renewed_s = tried_s = beat_s = -math.inf
        told: dict[str, int] | None = None
        while not stopped.wait(_STEP_S if told is not None else 0.0):
            now_s = time.monotonic()
            self._fetches.step()
            if self._server is None and now_s - tried_s >= _SERVE_AGAIN_S:
                certificates, tried_s, said_s = self._serve(running), now_s, -math.inf
            if now_s - said_s >= _SERVING_S:
                said_s = now_s
                self._send(LEADER, self._serving)
            if now_s - renewed_s >= _CERTIFICATES_S:
                renewed_s = now_s
                certificates.look()
            figures = self._figures.now()
            if figures != told or now_s - beat_s >= _BEAT_S:
                told, beat_s = figures, now_s
                self._tell(figures)

    def _follow(self, stopped: threading.Event) -> None:
        topics = Topics(self._settings.cluster.topic_prefix)
        while not stopped.is_set():
            try:
                follow_nodes(self._addresses, topics.nodes, kafka_settings(self._settings), stopped)
            except TransportError as error:
                _log.warning("the addresses of other nodes cannot be read for now: %s", error)
                stopped.wait(1.0)

    def _ask_unit(self, unit: int, order: MakeSnapshot) -> None:
        self._send(unit_address(unit), order)

    def _cluster(self) -> ClusterId:
        return ClusterId(kept_catalogue(self._data), self._settings.cluster.topic_prefix)


class _Renewal:
    """Takes new certificates that were put in the place of those in force."""

    def __init__(self, cluster: ClusterSettings, tls: ssl.SSLContext | None) -> None:
        self._cluster, self._tls = cluster, tls
        self._seen = self._times()

    def look(self) -> None:
        """Take new files, if there are some that can be used."""
        times = self._times()
        if self._tls is None or times == self._seen:
            return
        try:
            _own_tls(self._cluster)
            self._tls.load_cert_chain(self._cluster.transfer_certificate, self._cluster.transfer_key)
            self._seen = times
            _log.info("%s: new certificates are in force", self._cluster.transfer_certificate)
        except (CertificateError, OSError) as error:
            _log.warning("new certificates are not taken: %s", error)

    def _times(self) -> list[int]:
        files = self._cluster.transfer_certificate, self._cluster.transfer_key
        return [os.stat(each).st_mtime_ns for each in files if self._tls is not None and os.path.exists(each)]


def _opened(cluster: ClusterSettings, data: Path) -> tuple[Listening, ssl.SSLContext | None]:
    """Open the port, and read the certificate. If one of these fails, or no snapshot can be made in the data folder,
    there is no socket, and the reason says why.
    """
    try:
        try_link(data)
    except SnapshotError as error:
        return Listening(None, "", str(error)), None
    try:
        tls = None if cluster.transfer_certificate == NONE else _own_tls(cluster)
    except (CertificateError, OSError) as error:
        return Listening(None, "", f"the certificate cannot be used: {error_text(error)}"), None
    try:
        return listen(cluster), tls
    except OSError as error:
        where = f"cluster.transfer is {cluster.transfer}, cluster.broker is {cluster.broker}"
        return Listening(None, "", f"the port cannot be opened: {error_text(error)} ({where})"), None


def _own_tls(cluster: ClusterSettings) -> ssl.SSLContext:
    """Raises CertificateError, OSError."""
    files = CertificateFiles(cluster.transfer_certificate, cluster.transfer_key)
    return read_certificates(files, time.time()).context


def _donors_tls(cluster: ClusterSettings) -> ssl.SSLContext:
    """Return what verifies donors. Raises DonorError if the file of the CAs cannot be used."""
    file = None if cluster.transfer_ca == NONE else cluster.transfer_ca
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        why = "it holds no certificates" if isinstance(error, ssl.SSLError) else error.strerror
        raise DonorError(f"cluster.transfer_ca: {file}: {why}; name a file of CAs in PEM") from None


def _warn_of_cas(cluster: ClusterSettings) -> None:
    """Log a warning if the file of the CAs cannot be used. Each fetch looks at it again."""
    try:
        _donors_tls(cluster)
    except DonorError as error:
        _log.warning("nothing can be fetched from nodes that speak TLS: %s", error)
