"""SIGHUP: the configuration is read again, and its tokens take the place of those before."""

import logging
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import fields, is_dataclass

from railgun.access.guard import Guard
from railgun.access.token_files import TokenFileError
from railgun.config.access import tokens_of
from railgun.config.kinds import ConfigError
from railgun.config.settings import Settings
from railgun.wording import counted

_TAKEN_OVER = frozenset({"http.tokens", "http.tokens_file", "http.anonymous"})
_KEPT = "the tokens stay as they were"
_log = logging.getLogger("railgun.access")
_audit = logging.getLogger("railgun.audit")


class TokenReload:
    """Puts the tokens of the configuration as it is now in place of a guard's: all, or none where anything is wrong.

    settings: with which the process began.  reread: reads them again; raises ConfigError, TokenFileError, OSError.
    """

    def __init__(self, settings: Settings, reread: Callable[[], Settings]) -> None:
        self._settings, self._reread = settings, reread
        self._one_at_a_time = threading.Lock()

    def __call__(self, guard: Guard) -> None:
        """Do it, and log what came of it. From any thread."""
        with self._one_at_a_time:
            try:
                settings = self._reread()
                tokens = tokens_of(settings.http)
            except (ConfigError, TokenFileError, OSError) as error:
                _audit.error("the configuration was not read again: %s; %s", error, _KEPT)
                return
            if guard.tokens and not tokens:
                _audit.error("there are no tokens any more; %s: restart the server to let anybody in", _KEPT)
                return
            guard.replace(tokens)
        _audit.info("the configuration was read again: %s", counted(len(tokens), "token"))
        for warning in guard.warnings():
            _log.warning(warning)
        others = differences(self._settings, settings)
        if others:
            _log.warning("changed, and taken over at the next start only: %s", ", ".join(others))


def differences(before: Settings, after: Settings) -> list[str]:
    """The keys, as in "http.port", of which a reload takes nothing over."""
    found = []
    for section in fields(Settings):
        one, other = getattr(before, section.name), getattr(after, section.name)
        if not is_dataclass(one):
            found += [section.name] if one != other else []
            continue
        names = (each.name for each in fields(one))
        found += [f"{section.name}.{name}" for name in names if getattr(one, name) != getattr(other, name)]
    return [each for each in found if each not in _TAKEN_OVER]


def hangup_ends_it() -> bool:
    """Whether SIGHUP keeps its meaning: on a terminal that goes away, or where it is to be ignored, as by nohup."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return True
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
