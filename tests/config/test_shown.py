"""Settings without secrets: for support bundles."""

from dataclasses import fields

from railgun.access.tokens import Token
from railgun.config.settings import HttpSettings, InputSettings, Settings
from railgun.config.shown import HIDDEN, settings_shown

SECRET = "not-to-be-seen"


def test_every_key_is_shown() -> None:
    shown = settings_shown(Settings())
    assert list(shown) == [each.name for each in fields(Settings)]
    assert set(shown["http"]) == {each.name for each in fields(HttpSettings)}
    assert shown["http"]["tls"]["certificate"] == "none"
    assert shown["engine"]["durability"] == "fsync"


def test_tokens_without_their_hashes() -> None:
    token = Token("app", (SECRET.encode() * 3,), ("read:payments",), 5.0, 7)
    shown = settings_shown(Settings(http=HttpSettings(tokens=(token,))))
    assert shown["http"]["tokens"] == [
        {"name": "app", "scopes": ["read:payments"], "expires_s": 5.0, "limit_per_s": 7}
    ]


def test_what_is_passed_through_may_be_a_secret() -> None:
    kafka = {
        "sasl.password": SECRET,
        "sasl.username": SECRET,
        "ssl.key.pem": SECRET,
        "ssl.key.password": 4711,
        "some.new.key": SECRET,
        "sasl.mechanism": "PLAIN",
        "security.protocol": "SASL_SSL",
        "fetch.wait.max.ms": 30,
    }
    assert settings_shown(Settings(kafka=kafka))["kafka"] == {
        **dict.fromkeys(kafka, HIDDEN),
        "sasl.mechanism": "PLAIN",
        "security.protocol": "SASL_SSL",
        "fetch.wait.max.ms": 30,
    }


def test_urls_without_user_and_password() -> None:
    for before in (f"me:{SECRET}", SECRET, f"me:{SECRET}/{SECRET}", f"me:{SECRET}?#{SECRET}", f"[{SECRET}"):
        url = f"https://{before}@registry:8081/a"
        shown = settings_shown(Settings(input=InputSettings(schema_registry_url=url)))
        assert shown["input"]["schema_registry_url"] == "https://registry:8081/a"
