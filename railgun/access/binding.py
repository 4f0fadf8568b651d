"""Where a server may listen: beyond this machine only with tokens, or where it is said that anybody may do anything."""

from ipaddress import ip_address


class ExposedError(Exception):
    """A server would answer whoever reaches it. The message says what to set instead."""


def is_loopback(address: str) -> bool:
    """Whether an address, not a name, reaches this machine only."""
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_exposure(place: str, address: str, *, has_tokens: bool, anonymous: bool) -> None:
    """Raise ExposedError if others than this machine could do anything without a token, and nobody said that they may.

    place: as it was configured, for the message.  address: what it means.
    """
    if has_tokens or anonymous or is_loopback(address):
        return
    raise ExposedError(
        f"{place}: other machines can reach it, and there are no tokens, so that anybody could do anything: configure "
        "tokens (`railgun token new`, docs/security.md), listen on 127.0.0.1, or, where something else guards it, set "
        "http.anonymous = true (RAILGUN_HTTP__ANONYMOUS=true)"
    )
