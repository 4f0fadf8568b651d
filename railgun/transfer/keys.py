"""Signs the requests for snapshots and manifests with the key of the donor, the node that is asked (FORMAT.md)."""

import hmac
import secrets
from typing import Final

FETCH_HEADER: Final = "railgun-fetch"
"""The header with the random name of a fetch."""
SIGNATURE_HEADER: Final = "railgun-signature"
"""The header with the signature of a request, or of a manifest."""
HASHED_HEADER: Final = "railgun-hashed"
"""The header that says how many bytes of a snapshot are hashed while its manifest is made."""


def new_key() -> str:
    """Return a random key, in hexadecimal digits."""
    return secrets.token_hex(32)


def request_signature(key: str, method: str, path: str, part: str, fetch: str) -> str:
    """Return the signature of a request.

    path: as it is sent, with its percent signs.
    part: the header `range`; empty if there is none.
    fetch: the name of the fetch.
    """
    return _signature(key, "request", "\n".join((method, path, part, fetch)).encode())


def manifest_signature(key: str, name: str, body: bytes) -> str:
    """Return the signature of a manifest. name: the snapshot's."""
    return _signature(key, f"manifest\n{name}", body)


def is_signature(given: str, expected: str) -> bool:
    """Whether a signature is the expected one. The time that this takes reveals nothing."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _signature(key: str, purpose: str, body: bytes) -> str:
    return hmac.new(bytes.fromhex(key), purpose.encode() + b"\n" + body, "sha256").hexdigest()
