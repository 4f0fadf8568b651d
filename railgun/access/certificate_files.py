"""Reads and checks the files of `[http.tls]`, and makes the TLS context for handshakes from them.

Servers and nodes (railgun/config/access.py) and the transfer process call it.
"""

import hashlib
import os
import ssl
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from railgun.access.tls import CertificateError, Certificates, in_words
from railgun.access.token_files import TokenFileError, check_nobody_else_writes

FILE_BYTES_MAX = 16 << 20
_CIPHERS_OF_1_2 = "ECDHE+AESGCM:ECDHE+CHACHA20"
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_HOW_SENT = "-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The names of PEM files; None if a file is not configured. min_version: "1.2" or "1.3"."""

    certificate: str
    key: str
    client_ca: str | None = None
    client_crl: str | None = None
    min_version: str = "1.3"


def read_certificates(files: CertificateFiles, now_s: float) -> Certificates:
    """Returns the context for handshakes and the end of each file. Raises CertificateError, OSError.

    A certificate that has expired or is not valid yet is an error too, because no client would accept it.
    """
    try:
        return _read_all(files, now_s)
    except (ValueError, UnsupportedAlgorithm):
        # A certificate can hold names, times and keys that the library rejects late, with errors of these kinds.
        named = ", ".join(each for each in (files.certificate, files.client_ca, files.client_crl) if each)
        raise CertificateError(
            named, "a certificate in there is malformed, or of a kind that is not known"
        ) from None


def _read_all(files: CertificateFiles, now_s: float) -> Certificates:
    ends_s = {"server": _check_pair(files, now_s)}
    context = _context(files)
    notes = [_note_on_readers(files.key)] if _others_read(files.key) else []
    clients = None
    if files.client_ca is not None:
        content = _read(files.client_ca)
        ends_s["client_ca"] = _add_cas(context, files.client_ca, content)
        if files.client_crl is not None:
            lists = _read(files.client_crl)
            ends_s["client_crl"] = _add_revocations(context, files.client_crl, lists, content, now_s)
            content += lists
        clients = hashlib.sha256(content).digest()
    return Certificates(context, clients, ends_s, tuple(notes))


def _context(files: CertificateFiles) -> ssl.SSLContext:
    """Makes a TLS context with the server's certificate. Raises CertificateError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[files.min_version]
    context.set_ciphers(_CIPHERS_OF_1_2)
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would skip the check of the client's certificate, which may have expired since.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except ssl.SSLError as error:
        raise CertificateError(files.certificate, f"it cannot be used: {_reason(error)}") from None
    return context


def _no_password() -> str:
    """Answers OpenSSL's request for a password.

    An encrypted key was refused before. If the file was replaced since, OpenSSL would ask on the terminal without this.
    """
    return ""


def _check_pair(files: CertificateFiles, now_s: float) -> float:
    """Returns when the first certificate of the chain expires.

    Raises CertificateError if a certificate is not valid now, or if the key belongs to another one.
    """
    chain = _certificates(files.certificate, _read(files.certificate))
    if _public_key(files.key) != _encoded(chain[0].public_key()):
        raise CertificateError(
            files.key,
            f"it is not the key of the first certificate in {files.certificate}; name two that belong together",
        )
    for each in chain:
        _check_time(files.certificate, each, now_s)
    return min(each.not_valid_after_utc.timestamp() for each in chain)


def _public_key(file: str) -> bytes:
    """Returns the public half of a private key. Raises CertificateError, whose text reveals nothing of the key."""
    content = _read(file)
    try:
        key = serialization.load_pem_private_key(content, None)
    except TypeError:
        raise CertificateError(
            file, "the key is encrypted; decrypt it (openssl pkey), and let nobody else read the file"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateError(file, "it holds no private key in PEM that can be read") from None
    return _encoded(key.public_key())


def _encoded(key: object) -> bytes:
    assert hasattr(key, "public_bytes")
    encoded = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert isinstance(encoded, bytes)
    return encoded


def _check_time(file: str, certificate: x509.Certificate, now_s: float) -> None:
    begins_s, ends_s = (
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
    )
    clock = f"the clock of this machine says {in_words(now_s)}"
    if now_s > ends_s:
        raise CertificateError(
            file, f"the certificate ran out at {in_words(ends_s)}, and {clock}; name a new one"
        )
    if now_s < begins_s:
        raise CertificateError(
            file,
            f"the certificate is good from {in_words(begins_s)} on, and {clock}; set the clock, or name another",
        )


def _add_cas(context: ssl.SSLContext, file: str, content: bytes) -> float:
    """Makes the server ask clients for certificates of these CAs. Returns when the first CA expires."""
    found = _certificates(file, content)
    try:
        context.load_verify_locations(cadata=content.decode("ascii", "replace"))
    except ssl.SSLError as error:
        raise CertificateError(file, f"it cannot be used: {_reason(error)}") from None
    held = context.cert_store_stats()
    if held["x509_ca"] < held["x509"]:
        raise CertificateError(file, "a certificate in it is no CA's; name those of CAs alone")
    context.verify_mode = ssl.CERT_OPTIONAL
    return min(each.not_valid_after_utc.timestamp() for each in found)


def _add_revocations(context: ssl.SSLContext, file: str, content: bytes, cas: bytes, now_s: float) -> float:
    """Makes the server refuse revoked certificates. Returns when the first list expires.

    OpenSSL accepts no certificate by a list that has expired.
    """
    lists = _lists(file, content)
    before = context.cert_store_stats()
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        raise CertificateError(file, f"it cannot be used: {_reason(error)}") from None
    held = context.cert_store_stats()
    if held["x509"] != before["x509"] or held["crl"] != len(lists):
        raise CertificateError(
            file, "lists of revoked certificates (X509 CRL) belong here alone, each of them once"
        )
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    for ca in x509.load_pem_x509_certificates(cas):
        if all(each.issuer != ca.subject for each in lists):
            raise CertificateError(
                file,
                f"it has no list of {ca.subject.rfc4514_string()[:200]}, none of whose certificates would be good",
            )
    ends_s = min(
        (each.next_update_utc.timestamp() for each in lists if each.next_update_utc), default=float("inf")
    )
    if ends_s <= now_s:
        raise CertificateError(
            file,
            f"a list ran out at {in_words(ends_s)}, and no certificate would be good by it; fetch a new one",
        )
    return ends_s


def _certificates(file: str, content: bytes) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise CertificateError(
            file, f"it holds no certificate in PEM ({_HOW_SENT}) that can be read"
        ) from None


def _lists(file: str, content: bytes) -> list[x509.CertificateRevocationList]:
    """Reads every revocation list of a file. The library reads one at a time."""
    mark = b"-----BEGIN X509 CRL-----"
    try:
        found = [x509.load_pem_x509_crl(mark + each) for each in content.split(mark)[1:]]
    except ValueError:
        found = []
    if not found:
        raise CertificateError(file, f"it holds no list of revoked certificates in PEM ({mark.decode()})")
    return found


def _read(file: str) -> bytes:
    """Returns the content of a file. Raises CertificateError if other users may write it, OSError."""
    try:
        check_nobody_else_writes(file)
    except TokenFileError as error:
        raise CertificateError(file, str(error).removeprefix(f"{file}: ")) from None
    with open(file, "rb") as opened:
        content = opened.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise CertificateError(file, f"it has more than {FILE_BYTES_MAX} bytes; is it the right one?")
    return content


def _others_read(file: str) -> bool:
    return bool(os.stat(file).st_mode & stat.S_IROTH)


def _note_on_readers(file: str) -> str:
    return f"{file}: everybody may read this private key; chmod o-r {file}"


def _reason(error: ssl.SSLError) -> str:
    """Returns OpenSSL's reason for an error, without its numbers."""
    return (error.reason or "unknown").replace("_", " ").lower()
