"""Makes the guard and the certificates of a port from the settings of HTTP. Finds contradictions; gives warnings.

Front-ends and nodes call it at their start and at SIGHUP. It reads the files of tokens and certificates.
"""

import time

from railgun.access.binding import check_exposure, is_loopback
from railgun.access.guard import Guard
from railgun.access.tls import Certificates, Tls
from railgun.access.token_files import read_tokens_file
from railgun.access.tokens import Token, TokenError, check_distinct
from railgun.config.kinds import ConfigError
from railgun.config.settings import NONE, HttpSettings

_TOGETHER = (
    ("certificate", "key"),
    ("key", "certificate"),
    ("client_ca", "certificate"),
    ("client_crl", "client_ca"),
)
"""Pairs of keys of [http.tls]. The first one needs the second one."""


def has_tokens(settings: HttpSettings) -> bool:
    """Whether tokens guard the server. A file of tokens always has at least one."""
    return bool(settings.tokens) or settings.tokens_file != NONE


def tokens_of(settings: HttpSettings) -> tuple[Token, ...]:
    """Return the tokens of the settings and of their file. Raises ConfigError, TokenFileError, OSError."""
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
    """Return the guard, which decides which requests are allowed. Raises ConfigError, TokenFileError, OSError."""
    return Guard(
        tokens_of(settings),
        settings.hosts,
        burst_events=settings.batch_limit_events,
        needs_certificate=needs_certificate(settings),
    )


def has_tls(settings: HttpSettings) -> bool:
    """Whether the port speaks TLS."""
    return settings.tls.certificate != NONE


def needs_certificate(settings: HttpSettings) -> bool:
    """Whether clients have to show a certificate."""
    return settings.tls.client_ca != NONE


def tls_of(settings: HttpSettings) -> Tls | None:
    """Return the TLS of a port; None if it does not speak TLS. Raises ConfigError, CertificateError, OSError."""
    found = certificates_of(settings)
    return None if found is None else Tls(found)


def certificates_of(settings: HttpSettings) -> Certificates | None:
    """Return the certificates for handshakes; None without TLS. Raises ConfigError, CertificateError, OSError."""
    tls = settings.tls
    for one, other in _TOGETHER:
        if getattr(tls, one) != NONE and getattr(tls, other) == NONE:
            raise ConfigError(
                f"http.tls.{one}", f"it goes with http.tls.{other}, which is not set; set it too"
            )
    if needs_certificate(settings) and not has_tokens(settings) and not settings.anonymous:
        raise ConfigError(
            "http.tls.client_ca",
            "there are no tokens, so that whoever has a certificate of it could do anything: configure tokens, or, "
            "where that is meant, set http.anonymous = true (RAILGUN_HTTP__ANONYMOUS=true)",
        )
    if not has_tls(settings):
        return None
    # This import takes a tenth of a second. Servers without TLS do not need it.
    from railgun.access.certificate_files import CertificateFiles, read_certificates

    files = CertificateFiles(
        tls.certificate,
        tls.key,
        None if tls.client_ca == NONE else tls.client_ca,
        None if tls.client_crl == NONE else tls.client_crl,
        tls.min_version,
    )
    return read_certificates(files, time.time())


def check_address(place: str, address: str, settings: HttpSettings) -> None:
    """Raise ExposedError if a server may not listen at an address."""
    check_exposure(place, address, has_tokens=has_tokens(settings), anonymous=settings.anonymous)


def clear_text_warnings(place: str, address: str, settings: HttpSettings) -> list[str]:
    """Return a warning if tokens would come in clear text from other machines; otherwise nothing."""
    if not has_tokens(settings) or has_tls(settings) or settings.behind_proxy or is_loopback(address):
        return []
    remedy = "configure [http.tls], or put a proxy with TLS before it and set http.behind_proxy = true"
    return [f"{place}: tokens come in clear text from other machines; {remedy}"]
