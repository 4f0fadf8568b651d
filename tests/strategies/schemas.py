"""Random streams, and the text of their definitions files."""

import json
from collections.abc import Mapping, Sequence

from tests.oracle.definitions import ALL, Stream
from tests.oracle.types import Type, parse_type
from tests.strategies.expressions import Drawn, ExpressionSource
from tests.strategies.source import Source

TYPES = ("string", "long", "double", "boolean", "timestamp", "decimal(10,2)", "decimal(18,4)", "decimal(3,0)")
LATENESS_MS = (0, 1, 5, 1_000, 5_000, 60_000)
# Added to the lateness, of which a retention is never less.
RETENTION_BEYOND_MS = (0, 1, 20, 10_000, 3_600_000, 2_592_000_000, None)
DEDUP_EVENTS = (1_000_000, 1_000_000, 1, 2, 3, 8)


def stream(source: Source, *, spread: bool, computed_percent: int = 0) -> Stream:
    """A stream of one to three partitioners and two to six fields beside its time and id.

    With `spread` it may have several partitioners and partitions, else it is one task. With that chance it has one to
    three computed fields too, which may be partitioners.
    """
    fields = {"ts": parse_type("timestamp"), "id": parse_type(source.choice(("string", "string", "long")))}
    for number in range(source.integer(2, 6)):
        fields[f"f{number}"] = parse_type(TYPES[number] if source.chance(50) else source.choice(TYPES))
    types, computed = dict(fields), dict[str, tuple[str, str | None]]()
    if computed_percent and source.chance(computed_percent):
        for number in range(source.integer(1, 3)):
            drawn = computed_field(source, types)
            types[f"c{number}"], computed[f"c{number}"] = drawn.type, (drawn.text, said_type(source, drawn))
    keys = [name for name, declared in types.items() if name != "id" and declared.kind in ("string", "long")]
    partitioners = _partitioners(source, keys, 3 if spread else 1)
    lateness_ms = source.choice(LATENESS_MS)
    return Stream(
        name="s",
        fields=fields,
        computed=computed,
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
        *(f"{name} = {_computed(*said)}" for name, said in reversed(stream.computed.items())),
        *(f'{name} = "{declared}"' for name, declared in stream.fields.items()),
    ]
    for sql in queries:
        # A JSON string without escapes beyond ASCII's is a TOML string.
        lines += ["[[metrics]]", f"sql = {json.dumps(sql, ensure_ascii=False)}"]
    return "\n".join(lines) + "\n"


def _computed(text: str, type_: str | None) -> str:
    said = "" if type_ is None else f', type = "{type_}"'
    return f"{{ as = {json.dumps(text, ensure_ascii=False)}{said} }}"


def computed_field(source: Source, types: Mapping[str, Type]) -> Drawn:
    """The expression of a computed field over some fields. Mostly it is a text, which can be a partitioner."""
    expressions = ExpressionSource(source, types)
    kind = "string" if source.chance(40) else source.choice(expressions.kinds)
    return expressions.draw(kind, source.integer(1, 3))


def said_type(source: Source, drawn: Drawn) -> str | None:
    """What a definition says of a computed field's type; None if it leaves it out, as it mostly does."""
    return str(drawn.type) if drawn.type.kind != "decimal" and source.chance(30) else None


def new_field_type(source: Source) -> Type:
    """The type of a field that is added later."""
    return parse_type(source.choice(TYPES))
