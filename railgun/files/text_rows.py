"""Rows as lines of text, whole columns at a time: CSV, and NDJSON with exact numbers."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NEEDS_QUOTES = r'[",\r\n]|^$'
_NEEDS_ESCAPES = r'["\\\x00-\x1f]'


def csv_header(names: Sequence[str]) -> bytes:
    """The first line."""
    return (",".join(names) + "\n").encode()


def csv_rows(table: pa.Table) -> bytes:
    """Lines of CSV: null is an empty field, an empty string a quoted one."""
    columns = [pc.fill_null(_text(column, _quoted), "") for column in _arrays(table)]
    return _lines(columns, ",", "")


def ndjson_rows(table: pa.Table, integers: frozenset[str]) -> bytes:
    """Lines of JSON: decimals are strings, but those of the columns named `integers`, which are numbers."""
    pieces: list[pa.Array] = []
    for name, column in zip(table.column_names, _arrays(table)):
        text = _text(column, _json_string)
        if pa.types.is_decimal(column.type) and name not in integers:
            text = pc.binary_join_element_wise('"', text, '"', "")
        start = "{" if not pieces else ","
        pieces.append(pc.binary_join_element_wise(f'{start}"{name}":', pc.fill_null(text, "null"), ""))
    return _lines(pieces, "", "}")


def _arrays(table: pa.Table) -> list[pa.Array]:
    return [column.combine_chunks() for column in table.itercolumns()]


def _lines(columns: Sequence[pa.Array], separator: str, end: str) -> bytes:
    """The joined rows, each with its end and a line feed."""
    if not columns or not len(columns[0]):
        return b""
    rows = pc.binary_join_element_wise(*columns, separator) if len(columns) > 1 else columns[0]
    line_end, nothing = pa.scalar(f"{end}\n", pa.large_string()), pa.scalar("", pa.large_string())
    lines = pc.binary_join_element_wise(rows.cast(pa.large_string()), line_end, nothing)
    _, offsets, data = lines.buffers()
    return bytes(data[: np.frombuffer(offsets, np.int64)[len(lines)]])


def _text(column: pa.Array, of_string: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Each value's text; null stays null."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return of_string(column.cast(pa.string()))
    text = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        is_whole = pc.invert(pc.match_substring_regex(text, r"[.en]"))
        return pc.if_else(is_whole, pc.binary_join_element_wise(text, ".0", ""), text)
    if pa.types.is_decimal(column.type) and pc.any(pc.match_substring(text, "E")).as_py():
        return pa.array([None if each is None else _plain(each) for each in column.to_pylist()], pa.string())
    return text


def _plain(value: Decimal) -> str:
    return f"{value:f}"


def _quoted(column: pa.Array) -> pa.Array:
    doubled = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
    return pc.if_else(pc.match_substring_regex(column, _NEEDS_QUOTES), doubled, column)


def _json_string(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, _NEEDS_ESCAPES)).as_py():
        escaped = [
            None if each is None else json.dumps(each, ensure_ascii=False) for each in column.to_pylist()
        ]
        return pa.array(escaped, pa.string())
    return pc.binary_join_element_wise('"', column, '"', "")
