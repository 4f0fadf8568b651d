"""TLS of a port: the certificates in force, who takes their place, and what became of handshakes."""

import math
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from railgun.access.guard import WARNS_BEFORE_S
from railgun.access.refusals import refusals
from railgun.logs.setup import fields

HANDSHAKE_S = 10.0
"""How long a handshake may take."""
HANDSHAKE_LEAST_S = 0.1
"""What one has at least, whenever it begins."""
OUTCOMES = ("done", "failed", "untrusted", "late", "full")
"""Handshakes that came about; that did not; where the client's certificate was refused; that took too long; that did
not begin, since there were as many connections as may be."""


class CertificateError(Exception):
    """Certificates or keys that cannot be used. The message names file and remedy, and tells nothing of a key."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(f"{file}: {message}")


@dataclass(frozen=True, slots=True, eq=False)
class Certificates:
    """What handshakes are made with, as a whole.

    context: for one handshake or many; nobody changes it.
    clients: tells the CAs of clients, and what they revoked, from others; None: clients are asked for no certificate.
    ends_s: when each file runs out, since the epoch, by what it is: "server", "client_ca", "client_crl".
    notes: what to warn of.
    """

    context: ssl.SSLContext
    clients: bytes | None
    ends_s: Mapping[str, float]
    notes: tuple[str, ...] = ()


def _nothing() -> None:
    """Nobody wants to know."""


def _call(function: Callable[[], None]) -> bool:
    function()
    return True


class Tls:
    """TLS of one port. certificates: in force for handshakes that begin now.

    handshakes: how many there were, by outcome.  under_way: how many have begun and not ended.
    on_new_clients: called when other certificates of clients are good than before, once those are in force.
    uninterrupted: calls a function and waits for it, so that the port serves nothing meanwhile, and says whether it has
    returned; a server sets it that has an event loop.
    """

    def __init__(self, certificates: Certificates, now_s: Callable[[], float] = time.time) -> None:
        self.certificates, self._now_s = certificates, now_s
        self.handshakes: Counter[str] = Counter()
        self.under_way = 0
        self.on_new_clients: Callable[[], object] = _nothing
        self.uninterrupted: Callable[[Callable[[], None]], bool] = _call

    def replace(self, certificates: Certificates, also: Callable[[], object] = _nothing) -> bool:
        """Use these from now on. From any thread, but that of the event loop. Returns once `on_new_clients` has; False
        where the port did not get round to it for long: it does later, or it ends.

        also: replaces what is to change with them: nothing is served by the one and not by the other.
        """
        return self.uninterrupted(partial(self._replace, certificates, also))

    def _replace(self, certificates: Certificates, also: Callable[[], object]) -> None:
        also()
        before, self.certificates = self.certificates, certificates
        if certificates.clients != before.clients:
            self.on_new_clients()

    def is_outdated(self, certificates: Certificates) -> bool:
        """Whether a client was verified by certificates that do not say any more who is good."""
        return certificates.clients != self.certificates.clients

    def note_failure(self, error: BaseException, address: str) -> None:
        """Count a handshake that failed, and log a client's certificate that was refused. address: the client's."""
        untrusted = isinstance(error, ssl.SSLCertVerificationError)
        # Both event loops say so where a handshake takes too long; a client that goes away resets the connection.
        late = isinstance(error, ConnectionAbortedError | TimeoutError)
        self.handshakes["untrusted" if untrusted else "late" if late else "failed"] += 1
        if isinstance(error, ssl.SSLCertVerificationError):
            refusals.note(f"the client's certificate: {error.verify_message}", fields(client=address))

    def warnings(self) -> list[str]:
        """What to warn of: files that others may read, and certificates that have run out or soon will."""
        found, now_s = list(self.certificates.notes), self._now_s()
        for what, end_s in self.certificates.ends_s.items():
            left_s = end_s - now_s
            if left_s <= WARNS_BEFORE_S:
                when = "has run out" if left_s <= 0 else f"runs out in {left_s / 86_400:.1f} days"
                found.append(
                    f"{_NAMES[what]} {when} ({in_words(end_s)}); put a new one in its place, and send SIGHUP"
                )
        return found


_NAMES = {
    "server": "the certificate (http.tls.certificate)",
    "client_ca": "a CA of clients (http.tls.client_ca)",
    "client_crl": "a list of revoked certificates (http.tls.client_crl)",
}


def certificate_end_s(secured: ssl.SSLObject | ssl.SSLSocket) -> float:
    """When the certificate runs out that a client has shown, and that was verified in the handshake; -infinity where it
    has shown none.

    A connection may be kept for longer; and with TLS 1.2 a client may take up a session of some hours ago.
    """
    found = secured.getpeercert()
    if found is None or "notAfter" not in found:
        return -math.inf
    return float(ssl.cert_time_to_seconds(str(found["notAfter"])))


def has_certificate(secured: ssl.SSLObject | ssl.SSLSocket, now_s: float) -> bool:
    """Whether a client has shown a certificate that is good now."""
    return now_s <= certificate_end_s(secured)


def in_words(time_s: float) -> str:
    """A time since the epoch, in UTC."""
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
