"""Reads several event files of any formats as one sequence of blocks, in the given order.

`railgun run` and Spark's validation call it.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from railgun.files.arrow_source import ArrowSource, ParquetSource
from railgun.files.avro_source import AvroSource
from railgun.files.csv_source import CsvSource
from railgun.files.formats import HEAD_BYTES, Format, check_content, readable_format
from railgun.files.ndjson_source import NdjsonSource
from railgun.files.source import Block, Source
from railgun.wire.schema import Schema

_SOURCES: Mapping[Format, Callable[[Path, Schema], Source]] = {
    Format.PARQUET: ParquetSource,
    Format.CSV: CsvSource,
    Format.NDJSON: NdjsonSource,
    Format.AVRO: AvroSource,
    Format.ARROW: ArrowSource,
}


class EventFiles:
    """Files of events, which are opened and whose columns are checked. They are read once, by one thread.

    size_bytes: the size of all files.
    rows: the number of rows of all files; None if a file does not say.
    """

    def __init__(self, paths: Sequence[Path], schema: Schema) -> None:
        """Open the files. Raises FileError for the first file that cannot hold such events, and OSError."""
        self._sources: list[Source] = []
        try:
            for path in paths:
                self._sources.append(_open(path, schema))
        except BaseException:
            self.close()
            raise
        self.size_bytes = sum(source.size_bytes for source in self._sources)
        counts = [source.rows for source in self._sources]
        self.rows = None if None in counts else sum(count for count in counts if count is not None)

    def __enter__(self) -> "EventFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in order. `read_bytes` of a block counts over all files. Raises FileError, OSError."""
        before = 0
        for source in self._sources:
            for block in source.blocks():
                yield dataclasses.replace(block, read_bytes=before + block.read_bytes)
            before += source.size_bytes

    @property
    def ignored(self) -> dict[str, tuple[str, ...]]:
        """The columns that are not fields, by file. Complete once everything has been read."""
        return {source.file: source.ignored for source in self._sources if source.ignored}

    def close(self) -> None:
        """Close the files."""
        for source in self._sources:
            source.close()


def _open(path: Path, schema: Schema) -> Source:
    format_ = readable_format(path)
    with path.open("rb") as file:
        check_content(path, format_, file.read(HEAD_BYTES))
    return _SOURCES[format_](path, schema)
