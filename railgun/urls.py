"""Takes users and passwords out of URLs, and tells what of a URL may be shown."""

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_IN_TEXT = re.compile(r"://\S*@")


class Address(NamedTuple):
    """A URL without user and password; and these two, decoded, or None if the URL has none."""

    url: str
    credentials: tuple[str, str] | None


def address_of(url: str) -> Address:
    """Take a URL apart. Raises ValueError if that cannot be done; the message has no part of the URL."""
    try:
        parts = urlsplit(url)
        before, at, place = parts.netloc.rpartition("@")
        plain = urlunsplit(parts._replace(netloc=place))
    except ValueError:
        # The error's own message may hold the password.
        raise ValueError("it cannot be read as a URL") from None
    if "@" in plain:
        raise ValueError(
            "it has an @ that ends no user and password before a host; in these write / as %2F, ? as %3F, # as %23"
        )
    if not at:
        return Address(plain, None)
    user, _, password = before.partition(":")
    return Address(plain, (unquote(user), unquote(password)))


def shown_url(url: str) -> str:
    """Return a URL as it may be printed: without everything before the last @, however a password was written there."""
    before, at, after = url.rpartition("@")
    if not at:
        return url
    scheme = _SCHEME.match(before)
    return (scheme[0] if scheme else "") + after


def with_shown_urls(text: str) -> str:
    """Return a text of another program as it may be printed: its URLs are without user and password."""
    return _IN_TEXT.sub("://", text)
