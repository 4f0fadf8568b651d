"""TLS of a port: the certificates in force, their replacement, and the outcomes of handshakes.

Ports of servers and nodes use it.
"""

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
"""The longest time that a handshake may take."""
HANDSHAKE_LEAST_S = 0.1
"""The shortest time limit of a handshake, however late it begins."""
OUTCOMES = ("done", "failed", "untrusted", "late", "full")
"""The outcomes of handshakes.

done: it succeeded.  failed: it failed for another reason than those below.  untrusted: the client's certificate was
refused.  late: it took too long.  full: it was not begun, because the limit of connections was reached.
"""


class CertificateError(Exception):
    """A certificate or key cannot be used. The message names the file and the remedy, and reveals nothing of a key."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(f"{file}: {message}")


@dataclass(frozen=True, slots=True, eq=False)
class Certificates:
    """The TLS context of handshakes, and facts about the files that it was made from.

    context: used for many handshakes and never changed.
    clients: a digest of the CAs and revocation lists for clients. None: clients are asked for no certificate.
    ends_s: when each file expires, in seconds since the epoch, by its role: "server", "client_ca", "client_crl".
    notes: warnings about the files.
    """

    context: ssl.SSLContext
    clients: bytes | None
    ends_s: Mapping[str, float]
    notes: tuple[str, ...] = ()


def _nothing() -> None:
    """Does nothing: the default of callbacks."""


def _call(function: Callable[[], None]) -> bool:
    function()
    return True


class Tls:
    """TLS of one port.

    certificates: in force for handshakes that begin now.
    handshakes: the number of handshakes by outcome.
    under_way: the number of handshakes that have begun and not ended.
    on_new_clients: is called after the CAs or revocation lists for clients have changed.
    uninterrupted: calls a function while the port serves nothing, and waits for it. Returns False if that function has
        not returned in time. A server with an event loop sets it.
    """

    def __init__(self, certificates: Certificates, now_s: Callable[[], float] = time.time) -> None:
        self.certificates, self._now_s = certificates, now_s
        self.handshakes: Counter[str] = Counter()
        self.under_way = 0
        self.on_new_clients: Callable[[], object] = _nothing
        self.uninterrupted: Callable[[Callable[[], None]], bool] = _call

    def replace(self, certificates: Certificates, also: Callable[[], object] = _nothing) -> bool:
        """Replaces the certificates, and returns True after `on_new_clients` has returned.

        Returns False if the port was busy for too long. The port then replaces the certificates later, unless it ends.
        Any thread may call this but that of the event loop.
        also: replaces what changes together with the certificates. No request sees only one of the two changes.
        """
        return self.uninterrupted(partial(self._replace, certificates, also))

    def _replace(self, certificates: Certificates, also: Callable[[], object]) -> None:
        also()
        before, self.certificates = self.certificates, certificates
        if certificates.clients != before.clients:
            self.on_new_clients()

    def is_outdated(self, certificates: Certificates) -> bool:
        """True if these certificates have other CAs or revocation lists for clients than those in force."""
        return certificates.clients != self.certificates.clients

    def note_failure(self, error: BaseException, address: str) -> None:
        """Counts a failed handshake, and logs it if the client's certificate was refused. address: the client's."""
        untrusted = isinstance(error, ssl.SSLCertVerificationError)
        # Both event loops raise these if a handshake takes too long. A client that leaves resets the connection.
        late = isinstance(error, ConnectionAbortedError | TimeoutError)
        self.handshakes["untrusted" if untrusted else "late" if late else "failed"] += 1
        if isinstance(error, ssl.SSLCertVerificationError):
            refusals.note(f"the client's certificate: {error.verify_message}", fields(client=address))

    def warnings(self) -> list[str]:
        """Lists files that other users may read, and certificates that have expired or soon will."""
        return [*self.certificates.notes, *self.ending(WARNS_BEFORE_S)]

    def ending(self, within_s: float) -> list[str]:
        """Lists certificates that have expired, or will within so many seconds."""
        found, now_s = [], self._now_s()
        for what, end_s in self.certificates.ends_s.items():
            left_s = end_s - now_s
            if left_s <= within_s:
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
    """Returns when the client's certificate expires, which was verified in the handshake; -infinity without one.

    The certificate can expire while a connection is open. With TLS 1.2 a client may also resume a session of some
    hours ago.
    """
    found = secured.getpeercert()
    if found is None or "notAfter" not in found:
        return -math.inf
    return float(ssl.cert_time_to_seconds(str(found["notAfter"])))


def has_certificate(secured: ssl.SSLObject | ssl.SSLSocket, now_s: float) -> bool:
    """True if the client showed a certificate that is valid now."""
    return now_s <= certificate_end_s(secured)


def in_words(time_s: float) -> str:
    """Formats a time since the epoch as text in UTC."""
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
