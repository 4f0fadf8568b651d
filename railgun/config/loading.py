"""Settings from their defaults, a file, the environment and the command line: the later ones win."""

import dataclasses
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from railgun.config.errors import ConfigError
from railgun.config.keys import ENVIRONMENT_PREFIX, KEYS, SECTIONS, Key
from railgun.config.kinds import KindError, said
from railgun.config.settings import Settings
from railgun.language.errors import nearest


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """A setting given on the command line: `value` for `key` ("http.port"), by the option `option`."""

    option: str
    key: str
    value: object


def load_settings(
    file: Path | str | None = None, environment: Mapping[str, str] | None = None, flags: Iterable[Flag] = ()
) -> Settings:
    """The settings in force. Raises ConfigError, and OSError for a file that cannot be read."""
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    if file is not None:
        _put(values, _of_file(Path(file)))
    _put(values, _of_environment(environment or {}))
    _put(values, ((flag.option, KEYS[flag.key], flag.value) for flag in flags))
    defaults = Settings()
    return Settings(
        **{name: dataclasses.replace(getattr(defaults, name), **own) for name, own in values.items()}
    )


def _put(values: dict[str, dict[str, Any]], found: Iterable[tuple[str, Key, object]]) -> None:
    for place, key, value in found:
        try:
            values[key.section][key.name] = key.kind.read(value)
        except KindError as error:
            raise ConfigError(place, str(error)) from None


def _of_file(file: Path) -> Iterator[tuple[str, Key, object]]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(str(file), f"it is no UTF-8 text (byte {error.start})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(file), f"it is no TOML: {error}") from None
    for section, body in tables.items():
        if section not in SECTIONS:
            raise ConfigError(f"{file}: {section[:80]}", f"unknown section; {_meant_section(section, body)}")
        if not isinstance(body, dict):
            raise ConfigError(
                f"{file}: {section}", f"a table belongs here, as in [{section}], not {said(body)}"
            )
        for name, value in body.items():
            place = f"{file}: {section}.{name[:80]}"
            yield place, _key(place, f"{section}.{name}"), value


def _of_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Key, object]]:
    """Variables with a section, that is with two underscores: RAILGUN_URL and the like are no settings."""
    by_variable = {key.variable: key for key in KEYS.values()}
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        key = by_variable.get(variable)
        if key is None:
            raise ConfigError(variable, f"unknown setting; {_meant(variable, by_variable)}")
        yield variable, key, key.kind.from_text(environment[variable])


def _key(place: str, full_name: str) -> Key:
    key = KEYS.get(full_name)
    if key is None:
        own = {str(key): key.name for key in KEYS.values() if key.section == full_name.partition(".")[0]}
        near = nearest(full_name.partition(".")[2], own.values())
        raise ConfigError(
            place, f"unknown key; {_hint(near) if near else _meant(full_name, KEYS, list(own.values()))}"
        )
    return key


def _meant_section(section: str, body: object) -> str:
    """A key may have been written without its section."""
    sections = [str(key) for key in KEYS.values() if key.name == section]
    return _hint(sections[0]) if sections and not isinstance(body, dict) else _meant(section, SECTIONS)


def _meant(word: str, known: Iterable[str], shown: Iterable[str] | None = None) -> str:
    words = list(known)
    near = nearest(word, words)
    return _hint(near) if near else f"known here: {', '.join(sorted(shown or words))}"


def _hint(near: str) -> str:
    return f"did you mean {near}?"
