"""NDJSON files: one JSON object per line, every integer and decimal exact; blank lines are no rows."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from railgun.files.block import Block, Refusal
from railgun.files.errors import UnreadableFileError
from railgun.files.limits import LINE_BYTES_MAX, TEXT_BLOCK_BYTES, block_rows
from railgun.files.ndjson_fast import FastReader
from railgun.files.python_columns import read_columns
from railgun.wire.door import FieldError
from railgun.wire.no_json import no_json
from railgun.wire.schema import Schema
from railgun.wire.values import decode_json

_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r"


class NdjsonSource:
    """A Source of an NDJSON file. An absent field is null, as at the front-end."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.file, self._schema = str(path), schema
        self.size_bytes = path.stat().st_size
        self.rows: int | None = None
        self._names = [field.name for field in schema.fields]
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
        """Keys that are no fields."""
        return tuple(self._ignored)

    def blocks(self) -> Iterator[Block]:
        done, size = 0, block_rows(len(self._names))
        for text in self._pieces():
            lines = [line for line in text.split(b"\n") if line.strip(_BLANK)]
            for start in range(0, len(lines), size):
                part = lines[start : start + size]
                batch, refused = self._read(part)
                yield Block(self.file, batch, done, tuple(refused), self._input.tell())
                done += len(part)

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
            event, fault = _object(line)
            events.append(event)
            self._ignored.update(dict.fromkeys(name for name in event if name not in self._names))
            if fault is not None:
                broken[row] = Refusal(row, ".".join(map(str, fault.loc)) or None, fault.msg)
        batch, refused = read_columns(
            [[event.get(name) for event in events] for name in self._names], self._schema, len(lines)
        )
        found = {each.row: each for each in refused} | broken
        return batch, [found[row] for row in sorted(found)]

    def _pieces(self) -> Iterator[bytes]:
        """Whole lines of about TEXT_BLOCK_BYTES. Raises UnreadableFileError for a line without end."""
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


def _object(line: bytes) -> tuple[Mapping[str, object], FieldError | None]:
    """A line's object, or an empty one and what is wrong with the line."""
    try:
        event = decode_json(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return {}, no_json(line, error)
    if not isinstance(event, dict):
        return {}, FieldError((), "an event is a JSON object")
    return event, None
