"""The kinds of values that a key of the configuration can have: how a value is written, its bounds, and its errors.

`railgun.config.settings` gives each key its kind with a function from the end of this file, such as `text` or `whole`.

If a key's name ends in a unit, its value is a number in that unit, or text with a unit of its own:
`timeout_ms = 500` is `timeout_ms = "500ms"`, `body_limit_bytes = 1048576` is `body_limit_bytes = "1MiB"`.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from railgun.access.tokens import Token, TokenError, read_tokens
from railgun.language.duration import DurationError, format_duration, parse_duration
from railgun.language.errors import nearest


class ConfigError(ValueError):
    """A configuration that cannot be used.

    place: where it was set, as in "railgun.toml: http.port", "RAILGUN_HTTP__PORT" or "--http".
    message: one sentence with the remedy, without the place.
    """

    def __init__(self, place: str, message: str) -> None:
        self.place = place
        self.message = message
        super().__init__(place, message)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,15})\s*([A-Za-z]+)", re.ASCII)
FOREVER = "forever"
BYTES_BY_UNIT = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}


_PORTS = 1 << 16


class KindError(ValueError):
    """A key cannot have this value. The message says what belongs there."""


class SettingKind(Protocol):
    """Reads the values of a key, and checks them."""

    def read(self, value: object) -> Any:
        """Return the value for the program from one that was read from TOML. Raises KindError."""

    def from_text(self, text: str) -> object:
        """Return the TOML value that a text from the environment stands for."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is not empty."""

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise KindError(f"text belongs here, not {describe(value)}")
        if not value.strip():
            raise KindError("something belongs here, not an empty text")
        return value

    def from_text(self, text: str) -> object:
        return text


@dataclass(frozen=True, slots=True)
class Addresses(Text):
    """Addresses of servers: HOST:PORT, or several with commas."""

    def read(self, value: object) -> str:
        found = super(Addresses, self).read(value)
        for each in found.split(","):
            host, _, port = each.strip().rpartition(":")
            if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < _PORTS):
                raise KindError(f"HOST:PORT belongs here, or several with commas, not {each.strip()[:80]!r}")
        return found


_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hosts:
    """Names of hosts without ports: a list, or text with commas."""

    def read(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise KindError(
                f'a list of names belongs here, as in ["railgun.example.com"], not {describe(value)}'
            )
        for each in value:
            if not _HOST.fullmatch(each):
                raise KindError(f"{each[:80]!r} is no name of a host; write it without scheme, port and path")
        return tuple(value)

    def from_text(self, text: str) -> object:
        return [each.strip() for each in text.split(",")]


_STREAM_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}\.[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
_STREAM_FIELDS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class StreamFields:
    """Fields of streams, each as STREAM.FIELD: a list, or text with commas."""

    def read(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise KindError(f'a list of fields belongs here, as in ["payments.card"], not {describe(value)}')
        if len(value) > _STREAM_FIELDS_MAX:
            raise KindError(f"{len(value)} fields; at most {_STREAM_FIELDS_MAX} belong here")
        for each in value:
            if not _STREAM_FIELD.fullmatch(each):
                raise KindError(
                    f"{each[:80]!r} is no field of a stream; write STREAM.FIELD, as in payments.card"
                )
        return tuple(value)

    def from_text(self, text: str) -> object:
        return [each.strip() for each in text.split(",")]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Descriptions of tokens: a list of tables in TOML. The environment cannot give them."""

    def read(self, value: object) -> tuple[Token, ...]:
        try:
            return read_tokens(value)
        except TokenError as error:
            raise KindError(str(error)) from None

    def from_text(self, text: str) -> object:
        raise KindError("tokens stand in the file as [[http.tokens]], or in http.tokens_file; nowhere else")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise KindError(f"one of {', '.join(self.words)} belongs here, not {describe(value)}")
        if value not in self.words:
            near = nearest(value, self.words)
            hint = f"did you mean {near}?" if near else f"one of {', '.join(self.words)} belongs here"
            raise KindError(f"no {value[:80]!r} here; {hint}")
        return value

    def from_text(self, text: str) -> object:
        return text


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds."""

    least: int
    greatest: int

    def read(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise KindError(f"a whole number belongs here, not {describe(value)}")
        if not self.least <= value <= self.greatest:
            raise KindError(f"{value} is not in {self.least}..{self.greatest}")
        return value

    def from_text(self, text: str) -> object:
        return int(text) if _WHOLE.fullmatch(text.strip()) else text


@dataclass(frozen=True, slots=True)
class Truth:
    """A truth value: true or false."""

    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise KindError(f"true or false belongs here, not {describe(value)}")
        return value

    def from_text(self, text: str) -> object:
        return {"true": True, "false": False}.get(text.strip().lower(), text)


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes within bounds: a whole number, or text such as "64MiB"."""

    least: int
    greatest: int

    def read(self, value: object) -> int:
        if isinstance(value, str):
            value = _parse_size(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise KindError(f'a number of bytes belongs here, or text such as "64MiB", not {describe(value)}')
        if not self.least <= value <= self.greatest:
            raise KindError(f"{size(value)} is not in {size(self.least)}..{size(self.greatest)}")
        return value

    def from_text(self, text: str) -> object:
        return int(text) if _WHOLE.fullmatch(text.strip()) else text


@dataclass(frozen=True, slots=True)
class Duration:
    """A time within bounds: a number of units of `unit_ms`, or text such as "30s"."""

    unit_ms: int
    least_ms: int
    greatest_ms: int

    def read(self, value: object) -> float:
        if isinstance(value, str):
            try:
                value = parse_duration(value) / self.unit_ms
            except DurationError as error:
                raise KindError(str(error)) from None
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise KindError(f'a number or a time such as "30s" belongs here, not {describe(value)}')
        if not self.least_ms <= value * self.unit_ms <= self.greatest_ms:
            bounds = f"{format_duration(self.least_ms)}..{format_duration(self.greatest_ms)}"
            raise KindError(f"{value:g} {'ms' if self.unit_ms == 1 else 's'} is not in {bounds}")
        if self.unit_ms == 1 and value != int(value):
            raise KindError(f"{value:g} ms is no whole number")
        return int(value) if self.unit_ms == 1 else float(value)

    def from_text(self, text: str) -> object:
        return float(text) if _NUMBER.fullmatch(text.strip()) else text


@dataclass(frozen=True, slots=True)
class Lasting:
    """For how long something is kept: "forever" (None), or a time of at least `least_ms` such as "7d" (in ms)."""

    least_ms: int

    def read(self, value: object) -> int | None:
        if not isinstance(value, str):
            raise KindError(f'a time such as "7d" belongs here, or "forever", not {describe(value)}')
        if value == FOREVER:
            return None
        try:
            found_ms = parse_duration(value)
        except DurationError as error:
            raise KindError(f'{error}; or write "forever"') from None
        if found_ms < self.least_ms:
            raise KindError(f"{value} is less than {format_duration(self.least_ms)}")
        return found_ms

    def from_text(self, text: str) -> object:
        return text


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise KindError(f"{text[:40]!r} is no size: write a whole number and a unit, as in 512KiB 64MiB 2GB")
    if match[2] not in BYTES_BY_UNIT:
        near = nearest(match[2], BYTES_BY_UNIT)
        hint = f"; did you mean {near}?" if near else ""
        raise KindError(f"{match[2][:40]!r} is no unit of size ({' '.join(BYTES_BY_UNIT)}){hint}")
    return int(match[1]) * BYTES_BY_UNIT[match[2]]


def size(size_bytes: int) -> str:
    """Return a size as text in the largest binary unit that divides it: 67108864 -> `"64MiB"`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % BYTES_BY_UNIT[unit] == 0:
            return f"{size_bytes // BYTES_BY_UNIT[unit]}{unit}"
    return f"{size_bytes}B"


def describe(value: object) -> str:
    """Return what messages call a value: "a number", "text" and so on."""
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return "a table" if isinstance(value, dict) else names.get(type(value), type(value).__name__)


def key_of(default: Any, kind: SettingKind) -> Any:
    """Return a field of a settings class, with the default and the kind of its key."""
    return field(default=default, metadata={"kind": kind})


def text(default: str) -> Any:
    """Return the field of a key that holds text."""
    return key_of(default, Text())


def addresses(default: str) -> Any:
    """Return the field of a key that holds addresses of servers."""
    return key_of(default, Addresses())


def hosts() -> Any:
    """Return the field of a key that holds names of hosts; by default none."""
    return key_of((), Hosts())


def stream_fields() -> Any:
    """Return the field of a key that holds fields of streams; by default none."""
    return key_of((), StreamFields())


def tokens() -> Any:
    """Return the field of a key that holds tokens; by default none."""
    return key_of((), Tokens())


def choice(default: str, *others: str) -> Any:
    """Return the field of a key that holds one of a few words."""
    return key_of(default, Choice((default, *others)))


def whole(default: int, least: int, greatest: int) -> Any:
    """Return the field of a key that holds a whole number."""
    return key_of(default, Whole(least, greatest))


def truth(default: bool) -> Any:
    """Return the field of a key that holds true or false."""
    return key_of(default, Truth())


def bytes_(default: int, least: int, greatest: int) -> Any:
    """Return the field of a key that holds a number of bytes."""
    return key_of(default, Size(least, greatest))


def milliseconds(default: int, least_ms: int, greatest_ms: int) -> Any:
    """Return the field of a key that holds a time in ms."""
    return key_of(default, Duration(1, least_ms, greatest_ms))


def seconds(default: float, least_ms: int, greatest_ms: int) -> Any:
    """Return the field of a key that holds a time in s."""
    return key_of(default, Duration(1_000, least_ms, greatest_ms))


def lasting(least_ms: int) -> Any:
    """Return the field of a key that says for how long something is kept; by default for ever."""
    return key_of(None, Lasting(least_ms))
