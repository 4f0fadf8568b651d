"""URLs that may hold a user and a password: these apart from the rest, and what of it may be shown."""

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_IN_TEXT = re.compile(r"://\S*@")


class Address(NamedTuple):
    """A URL without user and password, and these, decoded; None where it has none."""

    url: str
    credentials: tuple[str, str] | None


def address_of(url: str) -> Address:
    """Take a URL apart. Raises ValueError where that cannot be done; the message holds nothing of the URL."""
    try:
        parts = urlsplit(url)
        before, at, place = parts.netloc.rpartition("@")
        plain = urlunsplit(parts._replace(netloc=place))
    except ValueError:
        # Its message may hold the password.
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
    """A URL as it may be printed: without all before the last @, in whatever form a password was written there."""
    before, at, after = url.rpartition("@")
    if not at:
        return url
    scheme = _SCHEME.match(before)
    return (scheme[0] if scheme else "") + after


def with_shown_urls(text: str) -> str:
    """A text of another program as it may be printed: each URL in it without user and password."""
    return _IN_TEXT.sub("://", text)
