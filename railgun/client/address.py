"""The address of a server: reads it from the user's input, and formats it for messages."""

import os
from collections.abc import Mapping
from urllib.parse import quote, unquote

import httpx

from railgun.access.binding import is_loopback
from railgun.client.errors import ClientError

DEFAULT_URL = "http://127.0.0.1:8080"
URL_VARIABLE = "RAILGUN_URL"

_SLASH = quote("/", safe="")
_PORT_MAX = 65_535


def url_from(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the server's address for a command: --url, else RAILGUN_URL, else this machine. Raises ClientError."""
    return checked_url(
        given or environment.get(URL_VARIABLE) or DEFAULT_URL, "--url" if given else URL_VARIABLE
    )


def checked_url(url: str, place: str = "url") -> str:
    """Check an address and return it without a slash at its end. Raises ClientError.

    place: the name of the option or parameter, for messages.
    """
    if "@" in url:
        # This check comes before any message that prints the address: the text before the @ may hold a password.
        raise ClientError(
            f"{place}: it has an @, and takes no user or password, which would be seen in lists of processes and in "
            "logs; give a token by " + ("token=" if place == "url" else "--token-file or RAILGUN_TOKEN")
        )
    if not url.startswith(("http://", "https://")):
        hint = "it begins with http:// or https://" if "://" in url else f"did you mean http://{url[:80]}?"
        raise ClientError(f"{place}: {url[:80]!r} is no address of a server; {hint}")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ClientError(f"{place}: {url[:80]!r} is no address of a server: {error}") from None
    if not parsed.host:
        raise ClientError(f"{place}: {url[:80]!r} names no host; write one as in {DEFAULT_URL}")
    if parsed.port is not None and not 0 < parsed.port <= _PORT_MAX:
        raise ClientError(f"{place}: {url[:80]!r} has no port of a server; they are 1 to {_PORT_MAX}")
    return url.rstrip("/")


def is_local(url: str) -> bool:
    """Whether the address is one of this machine."""
    host = httpx.URL(url).host
    return host == "localhost" or is_loopback(host)


def shown(url: str, path: str) -> str:
    """Format an address for messages, decoded. A slash within a name stays encoded, so it looks like no separator."""
    return url + _SLASH.join(map(unquote, path.split(_SLASH)))


def stream_path(stream: str) -> str:
    """Return the path of a stream."""
    return f"/v1/streams/{quote(stream, safe='')}"


def node_path(name: str) -> str:
    """Return the path of a node of the cluster."""
    return f"/v1/cluster/nodes/{quote(name, safe='')}"
