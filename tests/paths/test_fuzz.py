"""Random documents against random definitions: each is refused, or gives what the oracle's own extraction gives."""

import json
import random
from typing import Any

import pytest

from railgun.catalog.stream_reading import stream_from_json
from railgun.wire.path import text_of
from tests.counts import examples, seeds
from tests.oracle.paths import Number, Source, parse_field, unscaled_fields
from tests.oracle.types import Type, parse_type
from tests.paths.doors import LATEST_MS, Outcome, Refused, intake_of, outcome

TYPES = ["string", "long", "double", "boolean", "decimal(9,2)", "timestamp"]
KEYS = ["a", "b", "c", "d e", "f'", "ü", "", 'g"']
LEAVES = [
    '"x"', '""', '"ü\\u0000"', '"2026-01-31T23:59:59.5Z"', '"12.50"', "0", "-7", "9007199254740993", "1.5", "-0.0",
    "2e3", "1700000000.001", "9223372036854775807", "9223372036854775808", "true", "false", "null", "{}", "[]",
    '"\\ud800"',
]  # fmt: skip
# By type, what it mostly is.
GOOD = {
    "string": ['"x"', '"ü\\u0000"', "null"],
    "long": ["0", "-7", "9223372036854775807"],
    "double": ["1.5", "-0.0", "2e3", "7", "9007199254740993.0"],
    "boolean": ["true", "false", "null"],
    "decimal": ['"12.50"', "12.5", "-3", "1.25e1"],
    "timestamp": ["1700000000", "-7", '"2026-01-31T23:59:59.5Z"'],
    "unit": ["1700000000.001", "-0.0015", "-1.5e-2", "17e8", "-7", "1700000000123.9999", '"1700000000.25"'],
}
DOCUMENTS = 20


Fields = dict[str, tuple[Type, Source]]


def _definition(rng: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for number in range(rng.randint(1, 5)):
        steps: list[Any] = [rng.choice(KEYS[: rng.choice([3, len(KEYS)])])]
        while rng.random() < 0.6 and len(steps) < 6:
            steps.append(rng.randrange(4) if rng.random() < 0.3 else rng.choice(KEYS[:4]))
        said = {"type": rng.choice(TYPES), "from": text_of(tuple(steps))}
        if said["type"] == "timestamp" and rng.random() < 0.7:
            said["unit"] = rng.choice(["s", "ms", "us", "ns"])
        fields[f"x{number}"] = said if rng.random() < 0.9 else said["type"]
    return fields


def _text(rng: random.Random, depth: int = 0) -> str:
    """A JSON value whose keys are often those of paths."""
    kind = rng.random()
    if depth == 0 or (depth < 6 and kind < 0.45):
        names = [rng.choice(KEYS) for _ in range(rng.randrange(5))]
        return "{" + ", ".join(f"{json.dumps(name)}: {_text(rng, depth + 1)}" for name in names) + "}"
    if depth < 6 and kind < 0.6:
        return "[" + ",".join(_text(rng, depth + 1) for _ in range(rng.randrange(5))) + "]"
    return rng.choice(LEAVES)


def _put(document: Any, steps: tuple[str | int, ...], leaf: Any) -> Any:
    """The document with a value where a path leads, as far as nothing else is in the way."""
    if not steps:
        return leaf
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        found = document if isinstance(document, dict) else {}
        return {**found, step: _put(found.get(step), rest, leaf)}
    found = list(document) if isinstance(document, list) else []
    found += [None] * (step + 1 - len(found))
    found[step] = _put(found[step], rest, leaf)
    return found


def _leaf(rng: random.Random, declared: Type, source: Source) -> str:
    if rng.random() < 0.1:
        return rng.choice(LEAVES)
    return rng.choice(GOOD["unit" if source.unit is not None else declared.kind])


def _document(rng: random.Random, fields: Fields) -> bytes:
    text = _text(rng)
    if rng.random() < 0.8:
        document = json.loads(text, parse_float=Number) if rng.random() < 0.5 else {}
        marks: dict[str, str] = {}
        for declared, source in fields.values():
            if rng.random() < 0.8:
                marks[f"mark {len(marks)}"] = _leaf(rng, declared, source)
                document = _put(document, source.steps, f"mark {len(marks) - 1}")
        text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
        for mark, leaf in marks.items():
            # As it is written: Python would write another number.
            text = text.replace(f'"{mark}"', leaf)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.05:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _expected(data: bytes, fields: Fields) -> list[Any] | None:
    """The values by the oracle; None if the document is refused."""
    try:
        event = json.loads(
            data.decode(), parse_float=Number, parse_constant=_refuse, object_pairs_hook=_object
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    return unscaled_fields(event, fields)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The last of each key. Raises UnicodeEncodeError for lone surrogates, of keys that come again too."""
    json.dumps(pairs, ensure_ascii=False).encode()
    return dict(pairs)


def _refuse(name: str) -> None:
    raise ValueError(name)


def _same(found: Outcome, expected: list[Any] | None) -> bool:
    if expected is None or isinstance(found, Refused):
        return expected is None and isinstance(found, Refused)
    return repr(found) == repr(expected)


@pytest.mark.parametrize("seed", seeds(range(2), range(100)))
def test_random_documents(seed: int) -> None:
    rng = random.Random(seed)
    taken = 0
    for number in range(examples(200, 1_000) // DOCUMENTS):
        said = _definition(rng)
        fields: Fields = {}
        for name, body in said.items():
            type_, source = parse_field(name, body)
            fields[name] = parse_type(type_), source
        intake = intake_of(stream_from_json({"name": "s", "fields": said}))
        documents = [_document(rng, fields) for _ in range(DOCUMENTS)]
        expected = [_expected(data, fields) for data in documents]
        taken += sum(each is not None for each in expected)
        for data, wanted in zip(documents, expected):
            found = outcome(intake.take([data], LATEST_MS), 0)
            assert _same(found, wanted), f"{seed}/{number}: {said} of {data!r}: {found}, not {wanted}"
        # So many at once are checked by columns, if all are good.
        good = [each for each, wanted in zip(documents, expected) if wanted is not None]
        for some in (documents, good):
            many = some * (1 + 24 * len(fields) // max(1, len(some)))
            accepted = intake.take(many, LATEST_MS)
            for row in range(len(some)):
                wanted = expected[documents.index(some[row])]
                assert _same(outcome(accepted, row), wanted), (
                    f"{seed}/{number}, many: {said} of {some[row]!r}"
                )
    assert taken
