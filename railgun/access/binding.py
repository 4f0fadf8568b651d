"""The rule for listening addresses: other machines get access only with tokens, or if `http.anonymous` is set."""

from ipaddress import ip_address


class ExposedError(Exception):
    """A server would obey everybody who can reach it. The message says what to set instead."""


def is_loopback(address: str) -> bool:
    """True if an address can be reached from this machine only. A host name is never such an address."""
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_exposure(place: str, address: str, *, has_tokens: bool, anonymous: bool) -> None:
    """Raises ExposedError if other machines can reach the address, there are no tokens, and `anonymous` is not set.

    place: the setting as the user wrote it, for the message.  address: the IP address that it stands for.
    """
    if has_tokens or anonymous or is_loopback(address):
        return
    raise ExposedError(
        f"{place}: other machines can reach it, and there are no tokens, so that anybody could do anything: configure "
        "tokens (`railgun token new`, docs/security.md), listen on 127.0.0.1, or, where something else guards it, set "
        "http.anonymous = true (RAILGUN_HTTP__ANONYMOUS=true)"
    )
