"""Random streams, and the text of their definitions files."""

import json
from collections.abc import Sequence

from tests.oracle.definitions import ALL, Stream
from tests.oracle.types import Type, parse_type
from tests.strategies.source import Source

TYPES = ("string", "long", "double", "boolean", "timestamp", "decimal(10,2)", "decimal(18,4)", "decimal(3,0)")
LATENESS_MS = (0, 1, 5, 1_000, 5_000, 60_000)
# Added to the lateness, of which a retention is never less.
RETENTION_BEYOND_MS = (0, 1, 20, 10_000, 3_600_000, 2_592_000_000, None)
DEDUP_EVENTS = (1_000_000, 1_000_000, 1, 2, 3, 8)


def stream(source: Source, *, spread: bool) -> Stream:
    """A stream of one to three partitioners and two to six fields beside its time and id.

    With `spread` it may have several partitioners and partitions, else it is one task.
    """
    fields = {"ts": parse_type("timestamp"), "id": parse_type(source.choice(("string", "string", "long")))}
    for number in range(source.integer(2, 6)):
        fields[f"f{number}"] = parse_type(TYPES[number] if source.chance(50) else source.choice(TYPES))
    keys = [name for name, declared in fields.items() if name != "id" and declared.kind in ("string", "long")]
    partitioners = _partitioners(source, keys, 3 if spread else 1)
    lateness_ms = source.choice(LATENESS_MS)
    return Stream(
        name="s",
        fields=fields,
        time="ts",
        id="id",
        partitioners=partitioners,
        lateness_ms=lateness_ms,
        late_policy=source.choice(("rewrite", "discard")),
        retention_ms=retention_ms(source, lateness_ms),
        partitions=source.choice((1, 2, 3)) if spread else 1,
        dedup_events=source.choice(DEDUP_EVENTS),
    )


def _partitioners(source: Source, keys: Sequence[str], at_most: int) -> tuple[str, ...]:
    wanted = source.integer(1, at_most)
    chosen: list[str] = []
    for _ in range(wanted):
        candidates = [name for name in (*keys, ALL) if name not in chosen]
        if candidates:
            chosen.append(source.choice(candidates))
    return tuple(chosen)


def retention_ms(source: Source, lateness_ms: int) -> int | None:
    """A retention that such a lateness allows; None is for ever."""
    beyond = source.choice(RETENTION_BEYOND_MS)
    return None if beyond is None else lateness_ms + beyond


def duration(milliseconds: int | None) -> str:
    """A duration as definitions and changes write it."""
    return "forever" if milliseconds is None else f"{milliseconds}ms"


def definitions(stream: Stream, queries: Sequence[str]) -> str:
    """The definitions file of a stream and its first metrics."""
    lines = [
        f"[streams.{stream.name}]",
        f'time = "{stream.time}"',
        f'id = "{stream.id}"',
        f"partitioners = {json.dumps(list(stream.partitioners))}",
        f'lateness = "{duration(stream.lateness_ms)}"',
        f'late_policy = "{stream.late_policy}"',
        f'retention = "{duration(stream.retention_ms)}"',
        f"partitions = {stream.partitions}",
        f"dedup_events = {stream.dedup_events}",
        f"[streams.{stream.name}.fields]",
        *(f'{name} = "{declared}"' for name, declared in stream.fields.items()),
    ]
    for sql in queries:
        # A JSON string without escapes beyond ASCII's is a TOML string.
        lines += ["[[metrics]]", f"sql = {json.dumps(sql, ensure_ascii=False)}"]
    return "\n".join(lines) + "\n"


def new_field_type(source: Source) -> Type:
    """The type of a field that is added later."""
    return parse_type(source.choice(TYPES))
