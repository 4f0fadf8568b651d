"""Reads NDJSON files: one JSON object on each line, with exact integers and decimals. Blank lines are skipped.

A block in which every value has its field's type is read in one call. Any other block is read line by line.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from railgun.files.errors import UnreadableFileError
from railgun.files.python_columns import ARROW_TYPES, batch_of, read_events
from railgun.files.source import LINE_BYTES_MAX, TEXT_BLOCK_BYTES, Block, Refusal, block_rows
from railgun.wire.finding import top_level_names
from railgun.wire.json_error import json_error
from railgun.wire.schema import FieldType, Schema, WireKind
from railgun.wire.shapes import RAW, Leaf, Shape, shape_of
from railgun.wire.validator import FieldError
from railgun.wire.values import decode_any_json

_RAW_NULL = msgspec.Raw(b"null")  # one never equals bytes
# Numbers with an exponent, which decimals may have, are read one by one.
_RAW_DECIMAL = r'^("-?[0-9]+(\.[0-9]+)?"|-?[0-9]+(\.[0-9]+)?)$'
_RAW_INTEGER = r"^-?[0-9]{1,19}$"
_RAW_TEXT = r'^"[^"\\]*"$'
_RAW_NUMBER = r"^[0-9]{1,15}(\.[0-9]+)?$"
# How many digits behind the point are milliseconds.
_MILLISECOND_DIGITS = {"s": 3, "ms": 0}
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_SHAPES: dict[WireKind, Any] = {
    WireKind.STRING: str | None,
    WireKind.LONG: int | None,
    WireKind.DOUBLE: int | float | None,
    WireKind.BOOLEAN: bool | None,
    WireKind.TIMESTAMP: int | str | None,
}


class FastReader:
    """Reads lines without errors, many at a time. It says nothing about other lines."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._shape = shape_of(schema, _leaf)
        self._all_known = True
        self._known = top_level_names(schema)

    def read(self, lines: Sequence[bytes | msgspec.Raw]) -> pa.RecordBatch | None:
        """Return the fields of the lines; None if any line is not such an event."""
        shape = self._shape
        if shape is None:
            return None
        try:
            rows = map(shape.values, self._decoded(lines, shape))
            by_field = list(zip(*rows)) or [()] * len(self._schema.fields)
            columns = [
                _column(values, field.type, is_raw=place in shape.raw)
                for place, (values, field) in enumerate(zip(by_field, self._schema.fields))
            ]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, pa.ArrowException, OverflowError):
            return None
        if any(column is None for column in columns):
            return None
        return batch_of(columns, self._schema, len(lines))

    def _decoded(self, lines: Sequence[bytes | msgspec.Raw], shape: Shape) -> list[Any]:
        """Return the events of the lines. It is tried first whether they have known fields only, as most do."""
        known, decode = shape.decode_known, shape.decode
        if known is not None:
            self._all_known = True
            try:
                return [known(line) for line in lines]
            except msgspec.ValidationError:
                pass
        self._all_known = False
        # What is skipped is not looked at otherwise.
        b"\n".join(map(bytes, lines)).decode()
        return [decode(line) for line in lines]

    def unknown_names(self, lines: Sequence[bytes | msgspec.Raw]) -> dict[str, None]:
        """Return the names of unknown fields in some of the lines that were read last, in the order met."""
        if self._all_known:
            return {}
        named = (name for fields in map(_decode_fields, lines) for name in fields)
        return dict.fromkeys(name for name in named if name not in self._known)


def _leaf(type_: FieldType) -> Leaf:
    """Return a field's type for msgspec, and the value of an absent field. Decimals stay as they are written, and so do
    times that may be decimals.
    """
    return RAW if type_.kind is WireKind.DECIMAL or type_.unit else (_SHAPES[type_.kind], None)


def _column(values: Sequence[Any], type_: FieldType, *, is_raw: bool) -> pa.Array | None:
    """Return a column; None if the values have to be checked one by one. Raises what Arrow raises."""
    if type_.unit:
        return _times(values, type_)
    if is_raw and type_.kind is not WireKind.DECIMAL:
        # Fields of several types read one place.
        return None
    if type_.kind is WireKind.DECIMAL:
        column = _written(values)
        plain = pc.all(pc.match_substring_regex(column, _RAW_DECIMAL)).as_py()
        return None if plain is False else pc.utf8_trim(column, '"')
    if type_.kind is WireKind.TIMESTAMP and any(type(value) is str for value in values):
        return pa.array(values, pa.string())
    return pa.array(values, ARROW_TYPES[type_.kind])


def _written(values: Sequence[msgspec.Raw | None]) -> pa.Array:
    """Return values as they are written, as a column of text."""
    text = [None if raw is None or raw == _RAW_NULL else bytes(raw) for raw in values]
    return pa.array(text, pa.string())


def _times(values: Sequence[Any], type_: FieldType) -> pa.Array | None:
    """Return a column of times that count a unit; None if they have to be read one by one."""
    column = _written(values)
    if pc.all(pc.match_substring_regex(column, _RAW_INTEGER)).as_py() is not False:
        return column.cast(pa.int64())
    if pc.all(pc.match_substring_regex(column, _RAW_TEXT)).as_py():
        return pc.utf8_trim(column, '"')
    digits = _MILLISECOND_DIGITS.get(type_.unit)
    if digits is None or pc.all(pc.match_substring_regex(column, _RAW_NUMBER)).as_py() is False:
        return None
    # The digits of the milliseconds move before the point, and what is behind it is left out: no number is negative.
    with_point = pc.if_else(
        pc.match_substring(column, "."), column, pc.binary_join_element_wise(column, ".", "")
    )
    whole = pc.replace_substring_regex(
        pc.binary_join_element_wise(with_point, "0" * digits, ""),
        rf"^([0-9]+)\.([0-9]{{{digits}}})[0-9]*$",
        r"\1\2",
    )
    return whole.cast(pa.int64()).cast(pa.timestamp("ms"))


_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r"


class NdjsonSource:
    """A Source of an NDJSON file. An absent field is null, as at the front-end."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.file, self._schema = str(path), schema
        self.size_bytes = path.stat().st_size
        self.rows: int | None = None
        self._known = top_level_names(schema)
        self._ignored: dict[str, None] = {}  # in the order met
        self._fast = FastReader(schema)
        self._input = path.open("rb")
        try:
            self._check_start()
        except BaseException:
            self._input.close()
            raise

    @property
    def ignored(self) -> tuple[str, ...]:
        """The keys that are not fields."""
        return tuple(self._ignored)

    def blocks(self) -> Iterator[Block]:
        done, size = 0, block_rows(len(self._schema.fields))
        for lines in self.lines():
            for start in range(0, len(lines), size):
                part = lines[start : start + size]
                batch, refused = self._read(part)
                yield Block(self.file, batch, done, tuple(refused), self._input.tell())
                done += len(part)

    def lines(self) -> Iterator[list[bytes]]:
        """Yield the lines that are not blank, many at a time. Raises UnreadableFileError for a line without end."""
        for text in self._pieces():
            yield [line for line in text.split(b"\n") if line.strip(_BLANK)]

    def close(self) -> None:
        self._input.close()

    def _read(self, lines: list[bytes]) -> tuple[pa.RecordBatch, list[Refusal]]:
        fast = self._fast.read(lines)
        if fast is None:
            return self._one_by_one(lines)
        self._ignored.update(self._fast.unknown_names(lines))
        return fast, []

    def _one_by_one(self, lines: list[bytes]) -> tuple[pa.RecordBatch, list[Refusal]]:
        events: list[Mapping[str, object]] = []
        broken: dict[int, Refusal] = {}
        for row, line in enumerate(lines):
            event, fault = read_object(line)
            events.append(event)
            self._ignored.update(dict.fromkeys(name for name in event if name not in self._known))
            if fault is not None:
                broken[row] = Refusal(row, ".".join(map(str, fault.loc)) or None, fault.msg)
        batch, refused = read_events(events, self._schema)
        found = {each.row: each for each in refused} | broken
        return batch, [found[row] for row in sorted(found)]

    def _pieces(self) -> Iterator[bytes]:
        """Yield whole lines of about TEXT_BLOCK_BYTES together. Raises UnreadableFileError for a line without end."""
        rest = b""
        while data := self._input.read(TEXT_BLOCK_BYTES):
            end = data.rfind(b"\n") + 1
            if end:
                yield rest + data[:end]
                rest = data[end:]
            else:
                rest += data
            if len(rest) > LINE_BYTES_MAX:
                raise UnreadableFileError(
                    self.file, f"a line is longer than {LINE_BYTES_MAX} bytes; write one event per line"
                )
        if rest:
            yield rest

    def _check_start(self) -> None:
        if self._input.read(len(_MARK)) != _MARK:
            self._input.seek(0)
        start = self._input.tell()
        first = self._input.read(256).lstrip(_BLANK + b"\n")
        self._input.seek(start)
        if first.startswith(b"["):
            raise UnreadableFileError(
                self.file, "it is one JSON array; write one object per line, as jq -c '.[]' does"
            )


def read_object(line: bytes) -> tuple[Mapping[str, object], FieldError | None]:
    """Return a line's object; or an empty one, and what is wrong with the line."""
    try:
        event = decode_any_json(line)
    except json.JSONDecodeError as error:
        return {}, FieldError((), f"no JSON that can be read: {error}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return {}, json_error(line, error)
    if not isinstance(event, dict):
        return {}, FieldError((), "an event is a JSON object")
    return event, None
