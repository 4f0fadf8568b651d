"""Files that cannot be read: each error names the file, the row where there is one, and what to do."""

import contextlib
import gzip
from pathlib import Path

import pytest

from railgun.catalog.model import FieldDefinition, StreamDefinition
from railgun.files import csv_source, ndjson_source, source
from railgun.files.errors import (
    ColumnError,
    EncodingError,
    FileError,
    SuffixError,
    TooManyBadRowsError,
    UnreadableFileError,
)
from railgun.files.reading import EventFiles
from railgun.language.types import BOOLEAN, LONG
from tests.files.event_files import EVENTS, NAMES, SCHEMA, STREAM, read_back, write_events

HEADER = ",".join(NAMES) + "\n"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("events.parqet", "did you mean .parquet?"),
        ("events", "without an ending"),
        ("events.xls", "not .xls"),
    ],
)
def test_an_unknown_suffix(name: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    with pytest.raises(SuffixError) as caught:
        EventFiles([path], SCHEMA)
    assert str(path) in str(caught.value)
    assert hint in str(caught.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    with pytest.raises(SuffixError, match=r"it is a folder; name files in it, as in lake/\*\.parquet"):
        EventFiles([tmp_path / "lake"], SCHEMA)


@pytest.mark.parametrize("content", [".parquet", ".avro", ".arrow"])
@pytest.mark.parametrize("suffix", [".csv", ".ndjson", ".parquet", ".avro", ".arrow"])
def test_a_suffix_that_is_not_what_the_file_is(content: str, suffix: str, tmp_path: Path) -> None:
    path = write_events(tmp_path / f"events{content}", EVENTS).rename(tmp_path / f"renamed{suffix}")
    if content == suffix:
        EventFiles([path], SCHEMA).close()
        return
    with pytest.raises(SuffixError, match="give it the suffix of what it is"):
        EventFiles([path], SCHEMA)


@pytest.mark.parametrize("suffix", [".parquet", ".avro", ".arrow"])
def test_text_is_no_binary_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"events{suffix}"
    path.write_text(HEADER)
    with pytest.raises(SuffixError, match="the file is no"):
        EventFiles([path], SCHEMA)


def test_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(gzip.compress(HEADER.encode()))
    with pytest.raises(SuffixError, match=r"compressed with gzip.*unpack it first"):
        EventFiles([path], SCHEMA)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".avro", ".arrow"])
def test_an_empty_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"events{suffix}"
    path.touch()
    with pytest.raises(UnreadableFileError, match="the file is empty"):
        EventFiles([path], SCHEMA)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        EventFiles([tmp_path / "gone.csv"], SCHEMA)


@pytest.mark.parametrize("suffix", [".parquet", ".avro", ".arrow"])
def test_a_file_cut_anywhere_is_noticed(suffix: str, tmp_path: Path) -> None:
    whole = write_events(tmp_path / f"whole{suffix}", EVENTS).read_bytes()
    path = tmp_path / f"cut{suffix}"
    for length in range(4, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError) as caught:
            read_back([path])
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", [".parquet", ".avro", ".arrow"])
def test_a_flipped_byte_gives_an_error_or_events_but_no_defect(suffix: str, tmp_path: Path) -> None:
    whole = write_events(tmp_path / f"whole{suffix}", EVENTS).read_bytes()
    path = tmp_path / f"flipped{suffix}"
    for place in range(0, len(whole), 11):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        with contextlib.suppress(FileError):
            read_back([path])


@pytest.mark.parametrize("mark", ["utf-16", "utf-32"])
@pytest.mark.parametrize("suffix", [".csv", ".ndjson"])
def test_another_encoding(mark: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"events{suffix}"
    path.write_text(HEADER if suffix == ".csv" else "{}\n", encoding=mark)
    with pytest.raises(EncodingError, match="UTF-8"):
        EventFiles([path], SCHEMA)


def test_a_header_that_is_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes("ü,".encode("latin-1") + HEADER.encode())
    with pytest.raises(EncodingError, match="its header is no UTF-8; convert the file with iconv"):
        EventFiles([path], SCHEMA)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_another_separator(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(HEADER.replace(",", separator))
    with pytest.raises(ColumnError, match="not by commas"):
        EventFiles([path], SCHEMA)


def test_a_column_twice(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("id," + HEADER)
    with pytest.raises(ColumnError, match="two columns are named id"):
        EventFiles([path], SCHEMA)


@pytest.mark.parametrize(
    "rows", ['a,1,,,,,"open\n', 'a,1,,,,,"open\nb,2,,,,,x\n', 'a,1,,,,,"open\nb,2,,,,,"x"\n', 'a,1,,,,,"\n"']
)
def test_a_quote_that_is_not_closed(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(HEADER + rows)
    if rows.count('"') % 2:
        with pytest.raises(UnreadableFileError, match="quotes are odd in number"):
            read_back([path])
    else:
        assert [block.refused.first for block in read_back([path])] == [None]


def test_a_value_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "TEXT_BLOCK_BYTES", 256)
    path = tmp_path / "events.csv"
    path.write_text(HEADER + "a,1,,,,,x\n" + "b,2,,,,," + "x" * 2000 + "\n")
    with pytest.raises(UnreadableFileError, match="row 2: it cannot be read on from here"):
        read_back([path])


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson_source, "TEXT_BLOCK_BYTES", 64)
    monkeypatch.setattr(ndjson_source, "LINE_BYTES_MAX", 256)
    path = tmp_path / "events.ndjson"
    path.write_text('{"id": "' + "x" * 400 + '"}')
    with pytest.raises(UnreadableFileError, match="a line is longer than 256 bytes"):
        read_back([path])


def test_a_json_array(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text('\n [{"id": "a"}]')
    with pytest.raises(UnreadableFileError, match="one object per line, as jq -c"):
        EventFiles([path], SCHEMA)


def test_a_file_of_nothing_but_misshapen_rows_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_source, "_BAD_ROWS_MAX", 50)
    path = tmp_path / "events.csv"
    path.write_text(HEADER + "x;y\n" * 60)
    with pytest.raises(TooManyBadRowsError, match="over 50 rows on end lack the 7 columns"):
        read_back([path])


def test_an_avro_time_is_no_long(tmp_path: Path) -> None:
    path = write_events(tmp_path / "events.avro", EVENTS)
    fields = tuple(
        field.__class__("ts", SCHEMA.fields[2].type) if field.name == "ts" else field
        for field in SCHEMA.fields
    )
    with pytest.raises(ColumnError, match="column ts is timestamp-millis and cannot be long"):
        EventFiles([path], SCHEMA.__class__(1, fields))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_columns_of_other_types_are_told_before_a_row_is_read(suffix: str, tmp_path: Path) -> None:
    path = write_events(tmp_path / f"events{suffix}", EVENTS)
    types = {"count": BOOLEAN, "online": LONG}
    fields = [FieldDefinition(each.name, types.get(each.name, each.type)) for each in STREAM.fields]
    stream = StreamDefinition("payments", tuple(fields), time="ts", id="id")
    with pytest.raises(ColumnError) as caught:
        EventFiles([path], stream.schema(1))
    assert str(caught.value) == (
        f"{path}: column count is int64 and cannot be boolean, which takes booleans; column online is bool and cannot "
        "be long, which takes whole numbers: convert before"
    )


def test_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "events.csv"
    folder.mkdir()
    with pytest.raises(IsADirectoryError):
        EventFiles([folder], SCHEMA)


def test_limits_are_what_the_text_says() -> None:
    assert source.block_rows(1) == source.ROWS_MAX
    assert source.block_rows(1_000) * 1_000 <= 5 << 20
