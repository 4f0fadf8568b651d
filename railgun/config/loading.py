"""Loads settings from their defaults, a file, the environment and the command line. Each overrides those before it.

The commands and the child processes of a node call it.
"""

import dataclasses
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from railgun.access.token_files import check_nobody_else_writes
from railgun.config.kinds import ConfigError, KindError, describe
from railgun.config.settings import (
    ENVIRONMENT_PREFIX,
    KEYS,
    PASSED_THROUGH,
    SECTIONS,
    Key,
    PassedThrough,
    Settings,
)
from railgun.language.errors import nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Section = TypeVar("_Section", bound="DataclassInstance")
# With these keys, and with all of [http.tls], a file says who gets in.
_OF_ACCESS = frozenset({"tokens", "tokens_file", "anonymous", "hosts"})
_PASSED_VARIABLE = f"{ENVIRONMENT_PREFIX}{PASSED_THROUGH.upper()}__"


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """A setting given on the command line: `value` for `key` ("http.port"), by the option `option`."""

    option: str
    key: str
    value: object


def flags_given(options: Mapping[str, tuple[str, object]]) -> list[Flag]:
    """Return the options that were given. options: by option its key and its value; None if it was not given."""
    return [Flag(option, key, value) for option, (key, value) in options.items() if value is not None]


def load_settings(
    file: Path | str | None = None, environment: Mapping[str, str] | None = None, flags: Iterable[Flag] = ()
) -> Settings:
    """Return the settings in force. Raises ConfigError, OSError.

    Raises TokenFileError if the file says who gets in and others may write it.
    """
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    passed: dict[str, PassedThrough] = {}
    tables = {} if file is None else _tables(Path(file))
    _refuse_removed(str(file), tables, environment or {})
    if file is not None:
        passed.update(_passed_of_file(str(file), tables.pop(PASSED_THROUGH, {})))
        _put(values, _of_file(Path(file), tables))
        if values["http.tls"] or not _OF_ACCESS.isdisjoint(values["http"]):
            check_nobody_else_writes(file)
    passed.update(_passed_of_environment(environment or {}))
    _put(values, _of_environment(environment or {}))
    _put(values, ((flag.option, KEYS[flag.key], flag.value) for flag in flags))
    return _replaced(dataclasses.replace(Settings(), kafka=passed), values)


def settings_of(config: str | None, broker: str | None) -> Settings:
    """Return the settings in force, with the broker's address from the command line. Raises as `load_settings` does.

    config: the file.
    broker: None if the command line names none.
    """
    return load_settings(config, os.environ, flags_given({"--broker": ("cluster.broker", broker)}))


def _replaced(defaults: _Section, values: Mapping[str, dict[str, Any]], section: str = "") -> _Section:
    """Return settings with other values. values: by section and key. section: the name of `defaults`; "" for all."""
    below = {
        each.name: _replaced(getattr(defaults, each.name), values, f"{section}.{each.name}".lstrip("."))
        for each in dataclasses.fields(defaults)
        if dataclasses.is_dataclass(getattr(defaults, each.name))
    }
    return dataclasses.replace(defaults, **below, **values.get(section, {}))


def _put(values: dict[str, dict[str, Any]], found: Iterable[tuple[str, Key, object]]) -> None:
    for place, key, value in found:
        try:
            values[key.section][key.name] = key.kind.read(value)
        except KindError as error:
            raise ConfigError(place, str(error)) from None


def _tables(file: Path) -> dict[str, Any]:
    if file.is_fifo():
        raise ConfigError(str(file), "it is a pipe, and is read more than once, at SIGHUP too; name a file")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(str(file), f"it is no UTF-8 text (byte {error.start})") from None
    # The library also raises ValueError for numbers that are too long, and RecursionError for tables that are too deep.
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(file), f"it is no TOML: {error}") from None


def _of_file(file: Path, tables: Mapping[str, Any]) -> Iterator[tuple[str, Key, object]]:
    for section, body in tables.items():
        if section not in SECTIONS:
            raise ConfigError(f"{file}: {section[:80]}", f"unknown section; {_meant_section(section, body)}")
        if not isinstance(body, dict):
            raise ConfigError(
                f"{file}: {section}", f"a table belongs here, as in [{section}], not {describe(body)}"
            )
        for name, value in body.items():
            if f"{section}.{name}" in SECTIONS:
                yield from _of_file(file, {f"{section}.{name}": value})
                continue
            place = f"{file}: {section}.{name[:80]}"
            yield place, _key(place, section, name), value


def _passed_of_file(file: str, body: object) -> Iterator[tuple[str, PassedThrough]]:
    """Yield the names and values of [kafka].

    TOML makes tables of `security.protocol = "SSL"`, unless the name is quoted.
    """
    if not isinstance(body, dict):
        raise ConfigError(
            f"{file}: {PASSED_THROUGH}",
            f"a table belongs here, as in [{PASSED_THROUGH}], not {describe(body)}",
        )
    for name, value in body.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{below}", each) for below, each in _passed_of_file(file, value))
        elif isinstance(value, PassedThrough):
            yield name, value
        else:
            place = f"{file}: {PASSED_THROUGH}.{name[:80]}"
            raise ConfigError(place, f"text, a number, true or false belongs here, not {describe(value)}")


def _passed_of_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, PassedThrough]]:
    """Yield names and values of [kafka] from the environment: RAILGUN_KAFKA__SECURITY_PROTOCOL is security.protocol."""
    for variable in sorted(environment):
        if variable.startswith(_PASSED_VARIABLE):
            yield variable.removeprefix(_PASSED_VARIABLE).lower().replace("_", "."), environment[variable]


def _of_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Key, object]]:
    """Yield the settings among the variables. Others, such as RAILGUN_URL, have no section (no two underscores)."""
    by_variable = {key.variable: key for key in KEYS.values()}
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        if variable.startswith(_PASSED_VARIABLE):
            continue
        key = by_variable.get(variable)
        if key is None:
            raise ConfigError(variable, f"unknown setting; {_meant(variable, by_variable)}")
        try:
            value = key.kind.from_text(environment[variable])
        except KindError as error:
            raise ConfigError(variable, str(error)) from None
        yield variable, key, value


_REMOVED = ("cluster.node_index", "cluster.node_count")
"""Settings of earlier releases that do not exist any more."""
_INSTEAD = (
    "nodes share tasks by a plan that they make themselves (docs/operations.md, Several nodes); leave out "
)


def _refuse_removed(file: str, tables: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Raise ConfigError that names every given setting that was removed from Railgun, so that all can be taken out."""
    given = []
    for full_name in _REMOVED:
        section, _, name = full_name.partition(".")
        body, variable = tables.get(section), ENVIRONMENT_PREFIX + full_name.upper().replace(".", "__")
        given += [f"{file}: {full_name}"] if isinstance(body, dict) and name in body else []
        given += [variable] if variable in environment else []
    if given:
        raise ConfigError(", ".join(given), _INSTEAD + ("this setting" if len(given) == 1 else "all of them"))


def _key(place: str, section: str, name: str) -> Key:
    full_name = f"{section}.{name}"
    key = KEYS.get(full_name)
    if key is None:
        own = {str(key): key.name for key in KEYS.values() if key.section == section}
        near = nearest(name, own.values())
        raise ConfigError(
            place, f"unknown key; {_hint(near) if near else _meant(full_name, KEYS, list(own.values()))}"
        )
    return key


def _meant_section(section: str, body: object) -> str:
    """Return a hint for an unknown section: the key may have been written without its section."""
    sections = [str(key) for key in KEYS.values() if key.name == section]
    return (
        _hint(sections[0])
        if sections and not isinstance(body, dict)
        else _meant(section, (*SECTIONS, PASSED_THROUGH))
    )


def _meant(word: str, known: Iterable[str], shown: Iterable[str] | None = None) -> str:
    words = list(known)
    near = nearest(word, words)
    return _hint(near) if near else f"known here: {', '.join(sorted(shown or words))}"


def _hint(near: str) -> str:
    return f"did you mean {near}?"
