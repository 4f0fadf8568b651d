"""TLS of a client: the CA that it trusts, the certificate that it shows, and messages for failures."""

import ssl
from pathlib import Path

from railgun.client.errors import ClientError

_UNTRUSTED = "name the file of its CA (--ca)"


def client_context(
    url: str, ca: Path | str | None, cert: Path | str | None, key: Path | str | None
) -> ssl.SSLContext:
    """Make the TLS context of a client: the CAs that it trusts and the certificate that it shows.

    ca: the file with the CAs of the server; None: those of this machine.
    cert: the file with the client's certificate.  key: the file with its private key, if that is another file.
    Raises ClientError for files that cannot be used.
    """
    given = [name for name, file in (("ca", ca), ("cert", cert), ("key", key)) if file is not None]
    if not url.startswith("https://"):
        if given:
            verb = "is" if len(given) == 1 else "are"
            raise ClientError(f"{url}: {' and '.join(given)} {verb} for TLS: write the address with https://")
        # This context is never used. A default one would read the machine's CAs, which takes tens of milliseconds.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if cert is None and key is not None:
        raise ClientError(f"{key}: a key goes with a certificate; name that too")
    try:
        context = ssl.create_default_context(cafile=ca)
    except ssl.SSLError:
        raise ClientError(f"{ca}: it holds no certificate of a CA in PEM that can be read") from None
    except OSError as error:
        raise ClientError(f"{ca}: {error.strerror}") from None
    if cert is not None:
        _show(context, cert, key)
    return context


def _show(context: ssl.SSLContext, cert: Path | str, key: Path | str | None) -> None:
    def asked_for_password() -> str:
        raise ClientError(
            f"{key or cert}: the key is encrypted; decrypt it (openssl pkey), for you alone to read"
        )

    try:
        context.load_cert_chain(cert, key, password=asked_for_password)
    except ssl.SSLError as error:
        belong = "the key is not that of the certificate" if error.reason == "KEY_VALUES_MISMATCH" else None
        raise ClientError(
            f"{cert}: {belong or 'it holds no certificate and key in PEM'}; name two that belong together"
        ) from None
    except OSError as error:
        raise ClientError(
            f"{' or '.join(str(each) for each in (cert, key) if each)}: {error.strerror}"
        ) from None


def tls_failure(error: BaseException | None) -> str | None:
    """Return the TLS failure behind an error, with the remedy; None if the error has another cause."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate was refused: {error.verify_message}; {_UNTRUSTED}"
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return "the server speaks no TLS; write http://"
    return f"TLS: {(error.reason or 'it failed').replace('_', ' ').lower()}"
