"""Reads the configuration again after SIGHUP: its tokens and certificates replace those in force.

Servers and nodes have one `Reload`.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from railgun.access.guard import Guard
from railgun.access.tls import CertificateError, Certificates, Tls
from railgun.access.token_files import TokenFileError
from railgun.access.tokens import Token
from railgun.config.access import certificates_of, has_tls, needs_certificate, tokens_of
from railgun.config.kinds import ConfigError
from railgun.config.settings import NONE, HttpSettings, Settings, leaves
from railgun.wording import counted

_TAKEN_OVER = frozenset({"http.tokens", "http.tokens_file", "http.anonymous"})
_OF_CERTIFICATES = ("certificate", "key", "client_ca", "client_crl")
_BUSY = "the server is too busy, or ends; it takes them over once it comes to that"
_log = logging.getLogger("railgun.access")
_audit = logging.getLogger("railgun.audit")


class Reload:
    """Replaces the tokens and certificates of a port by those of the configuration: all, or none if anything is wrong.

    Each process that serves HTTP makes one, and calls it after a SIGHUP.

    settings: those with which the process began.
    reread: reads the settings again; raises ConfigError, TokenFileError, OSError.
    """

    def __init__(self, settings: Settings, reread: Callable[[], Settings]) -> None:
        self._settings, self._reread = settings, reread
        self._had_tls = has_tls(settings.http)
        self._kept = (
            "the tokens and certificates stay as they were"
            if self._had_tls
            else "the tokens stay as they were"
        )
        # The TLS settings last taken over, even if they are not in force yet.
        self._taken_tls = settings.http.tls
        self._one_at_a_time = threading.Lock()

    def __call__(self, guard: Guard, tls: Tls | None) -> None:
        """Read the configuration again, put it into force, and log the outcome.

        Any thread may call this but that of the event loop.
        guard, tls: those of the port. tls is None if the port does not speak TLS.
        """
        with self._one_at_a_time:
            try:
                settings = self._reread()
                http = self._usable(settings.http)
                tokens, certificates = tokens_of(http), certificates_of(http)
            except (ConfigError, TokenFileError, CertificateError, OSError) as error:
                _audit.error("the configuration was not read again: %s; %s", _said(error), self._kept)
                return
            except Exception as error:  # noqa: BLE001 - the server continues
                # A defect of the program. Whoever sent the signal looks into this log.
                _audit.exception("the configuration was not read again: %r; %s", error, self._kept)
                return
            missing = self._missing(guard, tokens, http)
            if missing is not None:
                what, remedy = missing
                _audit.error("there %s; %s: %s", what, self._kept, remedy)
                return
            is_in_force = self._take_over(guard, tls, tokens, certificates, http)
        said = counted(len(tokens), "token") + ("" if tls is None else ", and certificates")
        if is_in_force:
            _audit.info("the configuration was read again: %s", said)
        else:
            _audit.warning("the configuration was read again, and is not in force yet: %s; %s", said, _BUSY)
        for warning in (*guard.warnings(), *(() if tls is None else tls.warnings())):
            _log.warning(warning)
        others = self._others(settings)
        if others:
            _log.warning("changed, and taken over at the next start only: %s", ", ".join(others))

    def _usable(self, http: HttpSettings) -> HttpSettings:
        """Return the settings that may be put into force.

        A reload cannot switch TLS on or off: then the old http.tls is kept. Otherwise only its min_version is kept.
        """
        if has_tls(http) != self._had_tls:
            return replace(http, tls=self._taken_tls)
        return replace(http, tls=replace(http.tls, min_version=self._taken_tls.min_version))

    def _missing(self, guard: Guard, tokens: tuple[Token, ...], http: HttpSettings) -> tuple[str, str] | None:
        """Return (the limit on who gets in that the new settings leave out, the remedy); None if they leave out none.

        A file that lost its end by mistake must not let others in. Taking away `anonymous` without giving a token would
        change nothing now, but the next start may be refused.
        """
        to_let_more_in = "restart the server to let more in"
        if guard.tokens and not tokens:
            return "are no tokens any more", to_let_more_in
        if self._settings.http.anonymous and not http.anonymous and not tokens:
            return (
                "is no http.anonymous any more, and no token",
                "everybody is let in as before; configure tokens, or restart the server",
            )
        for name in ("client_ca", "client_crl"):
            if getattr(self._taken_tls, name) != NONE and getattr(http.tls, name) == NONE:
                return f"is no http.tls.{name} any more", to_let_more_in
        return None

    def _take_over(
        self,
        guard: Guard,
        tls: Tls | None,
        tokens: tuple[Token, ...],
        certificates: Certificates | None,
        http: HttpSettings,
    ) -> bool:
        """Put the new tokens and certificates into force. Returns whether they are in force already."""
        self._taken_tls = http.tls
        replace_tokens = partial(guard.replace, tokens, needs_certificate=needs_certificate(http))
        if tls is not None and certificates is not None:
            return tls.replace(certificates, replace_tokens)
        replace_tokens()
        return True

    def _others(self, settings: Settings) -> list[str]:
        """Return the keys that have changed and that a reload does not put into force."""
        found = differences(self._settings, settings)
        if has_tls(settings.http) != self._had_tls:
            return found
        return [each for each in found if each not in {f"http.tls.{name}" for name in _OF_CERTIFICATES}]


def _said(error: Exception) -> str:
    """Return an error as one line. An error of the system names the file and leaves out the error number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def differences(before: Settings, after: Settings) -> list[str]:
    """Return the keys that differ, such as "http.port", without those that a reload always puts into force."""
    ones, others = _by_name(before), _by_name(after)
    return [each for each in others if ones[each] != others[each] and each not in _TAKEN_OVER]


def _by_name(settings: Settings) -> dict[str, object]:
    return {f"{section}.{each.name}".lstrip("."): value for section, each, value in leaves(settings)}
