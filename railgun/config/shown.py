"""Settings as somebody else may see them: without secrets."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from railgun.access.tokens import Token
from railgun.config.settings import PassedThrough, Settings
from railgun.urls import shown_url

HIDDEN = "(hidden)"
"""Stands for a value that may be a secret."""
# Of what is passed through to Kafka's clients, texts may be passwords, keys or whole sections of other settings.
_SHOWN_OF_KAFKA = frozenset({"security.protocol", "sasl.mechanism", "sasl.mechanisms"})
_SECRET_OF_KAFKA = ("sasl.", "ssl.")


def settings_shown(settings: Settings) -> dict[str, Any]:
    """Return all settings by section and key, as JSON. Hashes of tokens are left out; what may be a secret is hidden.

    Names of files are shown, and never what is in them.
    """
    made = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return {**{name: _shown(value) for name, value in made.items()}, "kafka": _kafka(settings.kafka)}


def _shown(value: Any) -> Any:
    if isinstance(value, Token):
        return {
            "name": value.name,
            "scopes": list(value.scopes),
            "expires_s": value.expires_s,
            "limit_per_s": value.limit_per_s,
        }
    if is_dataclass(value):
        return {each.name: _shown(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [_shown(each) for each in value]
    return shown_url(value) if isinstance(value, str) else value


def _kafka(passed: Mapping[str, PassedThrough]) -> dict[str, Any]:
    return {
        key: value
        if key in _SHOWN_OF_KAFKA or not (isinstance(value, str) or key.startswith(_SECRET_OF_KAFKA))
        else HIDDEN
        for key, value in passed.items()
    }
