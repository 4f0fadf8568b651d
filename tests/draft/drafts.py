"""Drafts of samples, read as `apply` reads them, and events of several shapes to draft from."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.draft.draft import draft
from railgun.draft.sample import Sample

NOW_MS = 1_800_000_000_000
_COMMENTED = re.compile(r"^# (?=[A-Za-z]\w* = |\[\[metrics\]\])", re.MULTILINE)


def read(text: str) -> Definitions:
    """The definitions of a draft."""
    return parse_definitions(text)


def stream_of(text: str) -> StreamDefinition:
    (stream,) = read(text).streams.values()
    return stream


def uncommented(text: str) -> str:
    """A draft with all in force that it has as comments, but for what it leaves to the reader."""
    lines = [line for line in text.split("\n") if '"..."' not in line]
    return _COMMENTED.sub("", "\n".join(lines))


def drafted(documents: Sequence[Mapping[str, Any]], stream: str = "s") -> str:
    """The draft of events, whose every part the reader takes, comments too."""
    text = draft(Sample("a sample", documents), stream, NOW_MS).text
    read(text)
    read(uncommented(text))
    return text


def types_of(text: str) -> dict[str, str]:
    """The types of a draft's fields, by where they are in events."""
    return {
        field.name if field.path is None else field.path.text: str(field.type)
        for field in stream_of(text).fields
    }


def ndjson(path: Path, documents: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")
    return path


def orders(count: int = 200) -> list[dict[str, Any]]:
    """Nested orders: times in seconds, names that have to be quoted, an array of lines, no id at the top."""
    return [
        {
            "header": {"id": f"o-{n}", "created-at": 1_700_000_000 + 7 * n - (3 if n % 10 == 0 else 0)},
            "customer": {"ref": f"customer {n % 17}", "address": {"zip": f"{n % 9:05}"}},
            "payment": {"total-amount": {"value": 12.5 + n, "currency": "EUR"}, "tries": n % 3},
            "lines": [{"sku": f"sku {n}", "price": 1.5}],
            "note": f"for {n}" if n % 2 else n,
            "it's": {'a "b"\n': n % 2 == 0},
        }
        for n in range(count)
    ]


def changes(count: int = 100) -> list[dict[str, Any]]:
    """What Debezium writes of a table of payments, deletes among it."""
    return [
        {
            "before": None if n % 10 else {"id": n, "card": f"card {n % 9}"},
            "after": {"id": n, "card": f"card {n % 9}", "amount": 10.5 + n} if n % 10 else None,
            "source": {"version": "2.7", "ts_ms": 1_700_000_000_000 + n, "table": "payments"},
            "op": "c" if n % 10 else "d",
            "ts_ms": 1_700_000_000_500 + n,
        }
        for n in range(1, count + 1)
    ]
