"""Certificates for tests: CAs, what they sign, what they take back."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = timedelta(days=1)


def now() -> datetime:
    """With seconds, as certificates have them."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and of its key, and the certificate itself."""

    certificate: Path
    key: Path
    leaf: x509.Certificate


class Authority:
    """A CA with a folder for what it signs."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder, self._ca = folder, trustme.CA()
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._ca.cert_pem.bytes())
        self._count = 0

    @property
    def pem(self) -> bytes:
        return self._ca.cert_pem.bytes()

    @property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.pem)

    def alone(self) -> Pair:
        """The certificate of another CA, which nobody signed but it."""
        return Authority(self._folder / "alone").own()

    def own(self) -> Pair:
        """The CA's own certificate and key."""
        key = self._folder / "own.key"
        key.touch(mode=0o600)
        key.write_bytes(self._ca.private_key_pem.bytes())
        return Pair(self.file, key, self.certificate)

    def pair(self, *names: str, since: timedelta = -DAY, until: timedelta = 90 * DAY) -> Pair:
        """A certificate, good from `since` to `until` of now. names: it is good for; 127.0.0.1 and localhost."""
        issued = self._ca.issue_cert(
            *(names or ("127.0.0.1", "localhost")), not_before=now() + since, not_after=now() + until
        )
        self._count += 1
        stem = f"{self.file.stem}-{self._count}"
        certificate, key = self._folder / f"{stem}.crt", self._folder / f"{stem}.key"
        chain = b"".join(each.bytes() for each in issued.cert_chain_pems)
        certificate.write_bytes(chain)
        key.touch(mode=0o600)
        key.write_bytes(issued.private_key_pem.bytes())
        return Pair(certificate, key, x509.load_pem_x509_certificate(chain))

    def revoking(self, *pairs: Pair, until: timedelta = 30 * DAY) -> bytes:
        """A list of those that are good no more, in PEM."""
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(now() - DAY if until > -DAY else now() + 2 * until)
            .next_update(now() + until)
        )
        for each in pairs:
            revoked = x509.RevokedCertificateBuilder().serial_number(each.leaf.serial_number)
            builder = builder.add_revoked_certificate(revoked.revocation_date(now() - DAY).build())
        key = serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def client_context(self, pair: Pair | None = None) -> ssl.SSLContext:
        """For a client that trusts this CA. pair: its own certificate."""
        context = ssl.create_default_context(cafile=str(self.file))
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        return context


def encrypted(key: Path, password: str) -> bytes:
    """A key file's content with a password."""
    found = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(found, ec.EllipticCurvePrivateKey)
    return found.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    )
