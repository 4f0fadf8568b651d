"""What a page of another site may not have a browser do here: rules about Host, Origin and Sec-Fetch-Site."""

import re
from collections.abc import Iterable
from ipaddress import ip_address

SAFE_METHODS = frozenset({"GET", "HEAD"})
RESPONSE_HEADERS = (
    ("content-security-policy", "frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
)
"""What every answer tells browsers: show it in no frame, guess no type, send no referrer, keep no copy."""
_OWN_SITES = frozenset({b"same-origin", b"none"})
_AUTHORITY = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::[0-9]*)?")
_LOCALHOST = "localhost"
_KNOWN_MAX = 1_024


class Hosts:
    """The names under which browsers may come. configured: `http.hosts`, without ports."""

    def __init__(self, configured: Iterable[str] = ()) -> None:
        self._configured = frozenset(each.lower().rstrip(".") for each in configured)
        self._trusted: set[bytes] = set()

    def are_trusted(self, host: bytes) -> bool:
        """Whether a Host header is localhost, an address, or configured: no name that others have lead here."""
        if host in self._trusted:
            return True
        name = _name(host)
        if name != _LOCALHOST and name not in self._configured and not _is_address(name):
            return False
        if len(self._trusted) < _KNOWN_MAX:
            self._trusted.add(host)
        return True

    def is_foreign(self, origin: bytes, host: bytes | None) -> bool:
        """Whether an Origin header names another server than the Host header does, and is not configured."""
        scheme, _, authority = origin.lower().partition(b"://")
        if scheme not in (b"http", b"https") or not authority:
            return True
        return (host is None or authority != host.lower()) and _name(authority) not in self._configured


def is_cross_site(site: bytes) -> bool:
    """Whether a Sec-Fetch-Site header says that a page of another origin asks."""
    return site.lower() not in _OWN_SITES


def _name(authority: bytes) -> str:
    """The name or address in `name:port`; empty for what is no such thing."""
    match = _AUTHORITY.fullmatch(authority.decode("latin-1").lower())
    return "" if match is None else match[1] or match[2].rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
