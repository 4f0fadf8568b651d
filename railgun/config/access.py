"""From the settings of HTTP to the guard of a port: tokens of both places, contradictions, warnings."""

from railgun.access.binding import check_exposure, is_loopback
from railgun.access.guard import Guard
from railgun.access.token_files import read_tokens_file
from railgun.access.tokens import Token, TokenError, check_distinct
from railgun.config.kinds import ConfigError
from railgun.config.settings import NONE, HttpSettings


def has_tokens(settings: HttpSettings) -> bool:
    """Whether tokens guard the server. A file of tokens has one at least."""
    return bool(settings.tokens) or settings.tokens_file != NONE


def tokens_of(settings: HttpSettings) -> tuple[Token, ...]:
    """All tokens. Raises ConfigError, TokenFileError, OSError."""
    if settings.anonymous and has_tokens(settings):
        raise ConfigError(
            "http.anonymous",
            "with tokens, not everybody may do everything; leave out this setting, or the tokens",
        )
    found = settings.tokens
    if settings.tokens_file != NONE:
        found += read_tokens_file(settings.tokens_file)
    try:
        check_distinct(found)
    except TokenError as error:
        raise ConfigError("http.tokens_file", str(error)) from None
    return found


def guard_of(settings: HttpSettings) -> Guard:
    """What decides about requests. Raises ConfigError, TokenFileError, OSError."""
    return Guard(tokens_of(settings), settings.hosts, burst_events=settings.batch_limit_events)


def check_address(place: str, address: str, settings: HttpSettings) -> None:
    """Raise ExposedError where a server may not listen at an address."""
    check_exposure(place, address, has_tokens=has_tokens(settings), anonymous=settings.anonymous)


def clear_text_warnings(place: str, address: str, settings: HttpSettings) -> list[str]:
    """What to warn of where tokens would come in clear from other machines; nothing elsewhere."""
    if not has_tokens(settings) or settings.behind_proxy or is_loopback(address):
        return []
    remedy = "put a proxy with TLS before it, and set http.behind_proxy = true"
    return [f"{place}: tokens come in clear text from other machines; {remedy}"]
