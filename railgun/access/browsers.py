"""Protection from web pages of other sites: rules for the headers Host, Origin and Sec-Fetch-Site."""

import re
from collections.abc import Iterable
from ipaddress import ip_address

SAFE_METHODS = frozenset({"GET", "HEAD"})
RESPONSE_HEADERS = (
    ("content-security-policy", "frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
)
"""Headers of every answer. They tell browsers to show no frame, guess no type and send no referrer."""
NO_STORE = ("cache-control", "no-store")
"""Header of every answer that may hold anything of anybody. It tells browsers to keep no copy."""
_OWN_SITES = frozenset({b"same-origin", b"none"})
_AUTHORITY = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::[0-9]*)?")
_LOCALHOST = "localhost"
_KNOWN_MAX = 1_024


class Hosts:
    """The host names under which browsers may reach this server. configured: `http.hosts`, without ports."""

    def __init__(self, configured: Iterable[str] = ()) -> None:
        self._configured = frozenset(each.lower().rstrip(".") for each in configured)
        self._trusted: set[bytes] = set()

    def are_trusted(self, host: bytes) -> bool:
        """True if a Host header is localhost, an IP address, or a configured name.

        Any other name may be a stranger's, whose DNS entry points here.
        """
        if host in self._trusted:
            return True
        name = _name(host)
        if name != _LOCALHOST and name not in self._configured and not _is_address(name):
            return False
        if len(self._trusted) < _KNOWN_MAX:
            self._trusted.add(host)
        return True

    def is_foreign(self, origin: bytes, host: bytes | None) -> bool:
        """True if an Origin header names neither the server of the Host header nor a configured host."""
        scheme, _, authority = origin.lower().partition(b"://")
        if scheme not in (b"http", b"https") or not authority:
            return True
        return (host is None or authority != host.lower()) and _name(authority) not in self._configured


def is_cross_site(site: bytes) -> bool:
    """True if a Sec-Fetch-Site header says that the request comes from a page of another origin."""
    return site.lower() not in _OWN_SITES


def _name(authority: bytes) -> str:
    """Returns the name or address in `name:port`, or an empty text if the header has another form."""
    match = _AUTHORITY.fullmatch(authority.decode("latin-1").lower())
    return "" if match is None else match[1] or match[2].rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
