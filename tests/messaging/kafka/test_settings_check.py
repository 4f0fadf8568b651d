"""A wrong key or value in [kafka] is told before anything is begun, with the key."""

import pytest

from railgun.cli.main import main
from railgun.config.kinds import ConfigError
from railgun.config.loading import load_settings
from railgun.messaging.kafka.configured import check_pass_through, kafka_settings
from railgun.messaging.kafka.settings import KafkaSettings

NOBODY = "127.0.0.1:1"


def test_what_librdkafka_takes_passes() -> None:
    check_pass_through(KafkaSettings(NOBODY))
    check_pass_through(KafkaSettings(NOBODY, pass_through={"linger.ms": 2, "fetch.min.bytes": 1}))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("security.protocl", "SSL", "did you mean security.protocol"),
        ("batch.size", "soon", "Invalid value"),
        ("fetch.wait.max.ms", -5, "fetch.wait.max.ms"),
        ("message.timeout.ms", 900, "linger.ms"),
    ],
)
def test_what_it_does_not_take_is_told_with_its_key(key: str, value: str | int, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        check_pass_through(KafkaSettings(NOBODY, pass_through={key: value}))
    assert raised.value.place == f"[kafka] {key}"


@pytest.mark.parametrize("key", ["acks", "transactional.id", "group.instance.id", "group.protocol"])
def test_what_exactness_rests_on_cannot_be_set(key: str) -> None:
    settings = load_settings(None, {f"RAILGUN_KAFKA__{key.upper().replace('.', '_')}": "1"})
    with pytest.raises(ConfigError, match="leave it out") as raised:
        kafka_settings(settings)
    assert raised.value.place == f"[kafka] {key}"


@pytest.mark.parametrize("command", ["node", "frontend", "serve"])
def test_commands_end_at_once(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAILGUN_KAFKA__SECURITY_PROTOCL", "SSL")
    http = [] if command == "node" else ["--http", "127.0.0.1:0"]
    assert main([command, "--broker", NOBODY, *http]) == 2
    assert capsys.readouterr().err.startswith(f"railgun {command}: [kafka] security.protocl: No such")
