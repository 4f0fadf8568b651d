"""Settings: the documented file is the defaults, every key can be set from everywhere, mistakes name their place."""

import tomllib
from collections.abc import Iterator
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from railgun.config.kinds import (
    Addresses,
    Choice,
    ConfigError,
    Duration,
    Hosts,
    KindError,
    Lasting,
    SettingKind,
    Size,
    StreamFields,
    Text,
    Tokens,
    Truth,
    Whole,
    size,
)
from railgun.config.loading import Flag, load_settings
from railgun.config.settings import KEYS, Settings

ROOT = Path(__file__).parents[2]
DOCUMENTED = ROOT / "config" / "railgun.toml"
SET_EVERYWHERE = [full_name for full_name, key in KEYS.items() if not isinstance(key.kind, Tokens)]
"""Tokens are in files only."""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "r.toml"
    file.write_text(text, encoding="utf-8")
    return file


def another(kind: SettingKind, default: object) -> str:
    """Text for a value that is not the default."""
    match kind:
        case Addresses():
            return "other:1, third:2"
        case Text():
            return "other"
        case Choice():
            return next(word for word in kind.words if word != default)
        case Truth():
            return str(not default).lower()
        case Whole() | Size():
            return str(kind.least if kind.least != default else kind.greatest)
        case Lasting():
            return "7d"
        case Hosts():
            return "a.example.com, b"
        case StreamFields():
            return "payments.card, payments.pan"
        case Duration():
            return f"{kind.greatest_ms}ms"
    raise AssertionError(kind)


def value_of(settings: Settings, full_name: str) -> object:
    return attrgetter(full_name)(settings)


def names(tables: dict[str, Any], above: str = "") -> Iterator[str]:
    """Of all keys, those of a table in a table after the others."""
    for name, value in sorted(tables.items(), key=lambda each: bool(above) and isinstance(each[1], dict)):
        if isinstance(value, dict):
            yield from names(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def test_the_documented_file_is_the_defaults() -> None:
    assert load_settings(DOCUMENTED) == Settings() == load_settings()


def test_the_documented_file_has_every_key_and_says_something_about_it() -> None:
    tables = tomllib.loads(DOCUMENTED.read_text(encoding="utf-8"))
    assert list(names(tables)) == SET_EVERYWHERE
    blocks = DOCUMENTED.read_text(encoding="utf-8").split("\n\n")
    assert "#     [[http.tokens]]" in DOCUMENTED.read_text(encoding="utf-8")
    for full_name in SET_EVERYWHERE:
        name = full_name.rpartition(".")[2]
        [block] = [block for block in blocks if f"\n{name} = " in f"\n{block}"]
        assert block.splitlines()[0].startswith(("#", "["))


@pytest.mark.parametrize("full_name", SET_EVERYWHERE)
def test_every_key_can_be_set_from_everywhere(full_name: str, tmp_path: Path) -> None:
    key = KEYS[full_name]
    default = value_of(Settings(), full_name)
    text = another(key.kind, default)
    from_text = key.kind.from_text(text)
    expected = key.kind.read(from_text)
    assert expected != default

    toml = str(from_text).lower() if isinstance(from_text, int) else f'"{from_text}"'
    if isinstance(from_text, list):
        toml = str(from_text)
    file = written(tmp_path, f"[{key.section}]\n{key.name} = {toml}\n")
    assert value_of(load_settings(file), full_name) == expected
    assert value_of(load_settings(environment={key.variable: text}), full_name) == expected
    assert value_of(load_settings(flags=[Flag("--x", full_name, from_text)]), full_name) == expected


def is_declaring(path: Path) -> bool:
    """Whether a file says what the keys are: all of that room, but for the one that makes a guard of them."""
    return path.parent.name == "config" and path.stem != "access"


def test_every_key_has_a_reader() -> None:
    sources = [path for room in ("railgun", "frontend") for path in (ROOT / room).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sources if not is_declaring(path)]
    for full_name in KEYS:
        name = full_name.rpartition(".")[2]
        assert any(f".{name}" in text for text in texts), f"nothing reads {full_name}"


def test_variables_are_named_by_section_and_key() -> None:
    assert KEYS["http.port"].variable == "RAILGUN_HTTP__PORT"
    assert KEYS["http.tls.client_ca"].variable == "RAILGUN_HTTP__TLS__CLIENT_CA"
    assert len({key.variable for key in KEYS.values()}) == len(KEYS)


def test_the_command_line_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, '[http]\nhost = "a"\nport = 1\ntimeout_ms = 7\n')
    settings = load_settings(
        file, {"RAILGUN_HTTP__PORT": "2", "RAILGUN_HTTP__HOST": "b"}, [Flag("--http", "http.port", 3)]
    )
    assert (settings.http.host, settings.http.port, settings.http.timeout_ms) == ("b", 3, 7)
    assert asdict(settings)["engine"] == asdict(Settings())["engine"]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert load_settings(written(tmp_path, "\ufeff[http]\nport = 1\n")).http.port == 1


def test_other_variables_are_no_settings() -> None:
    assert (
        load_settings(environment={"RAILGUN_URL": "x", "RAILGUN_CACHE_DIR": "y", "A__B": "z"}) == Settings()
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[http]\nprt = 1\n", "http.prt: unknown key; did you mean port?"),
        ("[http]\nzzz = 1\n", "http.zzz: unknown key; known here: anonymous, batch_limit_events,"),
        ("[htp]\nport = 1\n", "htp: unknown section; did you mean http?"),
        ("port = 1\n", "port: unknown section; did you mean http.port?"),
        ("http = 1\n", "http: a table belongs here, as in [http], not a number"),
        ('[http]\nport = "8080"\n', "http.port: a whole number belongs here, not text"),
        ("[http]\nport = true\n", "http.port: a whole number belongs here, not true or false"),
        ("[http]\nport = 65536\n", "http.port: 65536 is not in 0..65535"),
        ('[http]\nhost = ""\n', "http.host: something belongs here, not an empty text"),
        ('[http]\ntimeout_ms = "5x"\n', "http.timeout_ms: 'x' is no unit of time (ms s m h d w)"),
        ("[http]\ntimeout_ms = 0\n", "http.timeout_ms: 0 ms is not in 1ms..1h"),
        ('[http]\nbody_limit_bytes = "1MIB"\n', "http.body_limit_bytes: 'MIB' is no unit of size"),
        ("[http]\nbody_limit_bytes = 1\n", "http.body_limit_bytes: 1B is not in 1KiB..1GiB"),
        ('[engine]\ndurability = "fsnc"\n', "engine.durability: no 'fsnc' here; did you mean fsync?"),
        ("[engine]\ndurability = 1\n", "engine.durability: one of fsync, os belongs here, not a number"),
        (
            "[console]\nmasks = 'a.b'\n",
            'console.masks: a list of fields belongs here, as in ["payments.card"]',
        ),
        (
            "[console]\nmasks = ['card']\n",
            "console.masks: 'card' is no field of a stream; write STREAM.FIELD",
        ),
        (
            "[engine]\ncheckpoint_interval_s = inf\n",
            "engine.checkpoint_interval_s: inf s is not in 100ms..1d",
        ),
        (
            '[cluster]\nbroker = "kafka"\n',
            "cluster.broker: HOST:PORT belongs here, or several with commas, not",
        ),
        ('[cluster]\nbroker = "a:1,b:65536"\n', "cluster.broker: HOST:PORT belongs here"),
        ("[http\n", "it is no TOML: Expected ']'"),
    ],
)
def test_mistakes_in_the_file_are_told_with_their_place(text: str, message: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load_settings(file)
    assert str(raised.value).startswith(f"{file}: {message}")


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_bytes(b"# \xff")
    with pytest.raises(ConfigError, match="no UTF-8 text"):
        load_settings(file)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("RAILGUN_HTTP__PRT", "1", "unknown setting; did you mean RAILGUN_HTTP__PORT?"),
        ("RAILGUN_HTTP__PORT", "x", "a whole number belongs here, not text"),
        ("RAILGUN_HTTP__PORT", "", "a whole number belongs here, not text"),
        ("RAILGUN_HTTP__PORT", "1_0", "a whole number belongs here, not text"),
        ("RAILGUN_ENGINE__DURABILITY", "OS", "no 'OS' here; did you mean os?"),
        (
            "RAILGUN_HTTP__HOSTS",
            "https://a",
            "'https://a' is no name of a host; write it without scheme, port and path",
        ),
        (
            "RAILGUN_HTTP__TOKENS",
            "secret",
            "tokens stand in the file as [[http.tokens]], or in http.tokens_file; nowhere else",
        ),
    ],
)
def test_mistakes_in_the_environment_are_told_with_the_variable(
    variable: str, value: str, message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load_settings(environment={variable: value})
    assert str(raised.value) == f"{variable}: {message}"


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("1", 1), ("1kB", 1_000), ("64MiB", 64 << 20), ("2 GB", 2 * 10**9), ("512 KiB", 512 << 10), ("7B", 7)],
)
def test_sizes(text: str, size_bytes: int) -> None:
    kind = Size(0, 1 << 40)
    assert kind.read(kind.from_text(text)) == size_bytes
    assert kind.read(size(size_bytes)) == size_bytes


@pytest.mark.parametrize("text", ["", "MiB", "1.5MiB", "-1MiB", "1 M", "1MiBs"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(KindError):
        Size(0, 1 << 40).read(text)


def test_times_are_in_the_unit_of_their_name() -> None:
    in_ms, in_s = Duration(1, 0, 10_000), Duration(1_000, 0, 10_000)
    assert (in_ms.read("2s"), in_ms.read(2), type(in_ms.read(2.0))) == (2_000, 2, int)
    assert (in_s.read("2s"), in_s.read(2), in_s.read(0.5), in_s.read("250ms")) == (2.0, 2.0, 0.5, 0.25)
    assert in_s.read(in_s.from_text("2.5")) == 2.5
    for kind, value in ((in_s, float("nan")), (in_ms, 2.5), (in_ms, 10_001), (in_s, "1.5s"), (in_s, None)):
        with pytest.raises(KindError):
            kind.read(value)


def test_settings_of_librdkafka_pass_through(tmp_path: Path) -> None:
    text = '[kafka]\nsecurity.protocol = "SSL"\n"ssl.ca.location" = "ca.pem"\nlinger.ms = 2\n'
    environment = {"RAILGUN_KAFKA__SSL_CA_LOCATION": "other.pem", "RAILGUN_KAFKA__DEBUG": "msg"}
    assert load_settings(written(tmp_path, text), environment).kafka == {
        "security.protocol": "SSL",
        "ssl.ca.location": "other.pem",
        "linger.ms": 2,
        "debug": "msg",
    }


@pytest.mark.parametrize("text", ["kafka = 1", "[kafka]\nbrokers = [1]"])
def test_settings_that_librdkafka_cannot_have(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="kafka"):
        load_settings(written(tmp_path, text))
