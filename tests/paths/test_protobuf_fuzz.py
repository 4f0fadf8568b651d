"""Random documents as Protobuf: each is refused, or gives what the oracle's own extraction gives; damage is refused."""

import json
import random
from typing import Any

import pytest

from frontend.formats.protobuf import document_of
from railgun.catalog.stream_reading import stream_from_json
from tests.counts import examples, seeds
from tests.oracle.paths import parse_field, unscaled_fields
from tests.oracle.types import parse_type
from tests.paths.doors import Refused, of_record, plain_protobuf
from tests.paths.protobuf_documents import NAME, UnfitError, class_of, encoded, shape_of
from tests.paths.test_fuzz import DOCUMENTS, Fields, _definition, _document, _same


def _fitting(value: Any) -> Any:
    """What of a value a message can have."""
    if isinstance(value, dict):
        return {name: _fitting(each) for name, each in value.items() if NAME.fullmatch(name)}
    if isinstance(value, list):
        return _alike([_fitting(each) for each in value])
    try:
        shape_of(value)
        if isinstance(value, str):
            value.encode()
    except (UnfitError, UnicodeEncodeError):
        return None
    return value


def _alike(values: list[Any]) -> list[Any]:
    """Those elements that can be in one array."""
    found: list[Any] = []
    for each in values:
        try:
            shape_of([*found, each])
        except UnfitError:
            continue
        found.append(each)
    return found


def _said(value: Any) -> Any:
    """A document without what is null, as fields that are not set are, and no more elements than a path reaches."""
    if isinstance(value, dict):
        return {name: _said(each) for name, each in value.items() if each not in (None, [])}
    return [_said(each) for each in value[:16]] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", seeds(range(2), range(100)))
def test_random_messages(seed: int) -> None:
    rng = random.Random(f"protobuf {seed}")
    taken = damaged = 0
    for number in range(examples(200, 1_000) // DOCUMENTS):
        said = _definition(rng)
        fields: Fields = {}
        for name, body in said.items():
            type_, source = parse_field(name, body)
            fields[name] = parse_type(type_), source
        stream = stream_from_json({"name": "s", "fields": said})
        for _ in range(DOCUMENTS):
            try:
                document = json.loads(_document(rng, fields))
            except (ValueError, RecursionError):
                continue
            if not isinstance(document, dict):
                continue
            document = _fitting(document)
            message = encoded(document)
            found, wanted = of_record(*plain_protobuf(stream, message)), unscaled_fields(document, fields)
            assert _same(found, wanted), f"{seed}/{number}: {said} of {document}: {found}, not {wanted}"
            taken += wanted is not None
            assert _said(document_of(class_of(message).FromString(message.value))) == _said(document)
            # Some bytes are other ones, or missing: whatever comes of it is refused, or values of the types.
            if message.value:
                bad = bytearray(message.value)
                for _ in range(rng.randint(1, 4)):
                    bad[rng.randrange(len(bad))] = rng.randrange(256)
                bad = bad[: rng.randint(0, len(bad))] if rng.random() < 0.3 else bad
                other = of_record(*plain_protobuf(stream, message._replace(value=bytes(bad))))
                damaged += isinstance(other, Refused)
    assert taken
    assert damaged
