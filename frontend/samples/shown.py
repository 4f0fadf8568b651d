"""What is shown of samples: the values of fields, the reply, and nothing that a mask covers."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frontend.access.masks import Mask
from frontend.samples.ring import Sample
from frontend.samples.values import EventFields
from railgun.catalog.catalog import StreamEntry
from railgun.language.derive import ResolvedDerived
from railgun.language.types import Kind, Type

_NOTES = ("late", "duplicate", "warming", "partial", "missing")


class _Reply(msgspec.Struct):
    """A reply whose values stay as they are."""

    id: msgspec.Raw
    time: msgspec.Raw
    metrics: dict[str, msgspec.Raw]
    late: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    duplicate: list[str] | msgspec.UnsetType = msgspec.UNSET
    warming: list[str] | msgspec.UnsetType = msgspec.UNSET
    partial: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    missing: list[str] | msgspec.UnsetType = msgspec.UNSET


_reply = msgspec.json.Decoder(_Reply).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_problem = msgspec.json.Decoder(dict[str, Any]).decode


def shown(samples: Sequence[Sample], mask: Mask, fields: EventFields) -> list[dict[str, Any]]:
    """Return samples for people, as JSON can have them.

    mask: of the stream as it is now. Each sample is also covered by the mask of its own time.
    """
    values = _values_of_texts(samples, fields)
    return [_shown(each, values.get(each.number), each.mask | mask) for each in samples]


def derived_of(entry: StreamEntry) -> dict[str, dict[str, Any]]:
    """Return the derived metrics by name: the expression of each, and the metrics and fields that it names."""
    known = (*entry.names, *entry.stream.types)
    return {
        name: {"expression": each.text, "reads": [other for other in known if other in each.names]}
        for name, each in entry.derived.items()
    }


def times_of(entry: StreamEntry) -> list[str]:
    """Return the fields and metrics whose values are times, in milliseconds."""
    return _of_kind({**entry.stream.types, **entry.known}, Kind.TIMESTAMP)


def conditions_of(entry: StreamEntry) -> list[str]:
    """Return the metrics that are true or false."""
    return _of_kind(entry.known, Kind.BOOLEAN)


def _of_kind(types: Mapping[str, Type | ResolvedDerived], kind: Kind) -> list[str]:
    return [
        name
        for name, each in types.items()
        if (each.result_type if isinstance(each, ResolvedDerived) else each).kind is kind
    ]


def _shown(sample: Sample, values: Mapping[str, Any] | None, mask: Mask) -> dict[str, Any]:
    if sample.fields is not None:
        values = _fields(sample.fields)
    is_refused = sample.status != 200
    text = sample.text if is_refused and mask.shows_texts else None
    return {
        "number": sample.number,
        "at_ms": sample.at_ms,
        "status": sample.status,
        "size_bytes": sample.size_bytes,
        "topic": None if sample.where is None else sample.where.topic,
        "partition": None if sample.where is None else sample.where.partition,
        "offset": None if sample.where is None else sample.offset,
        "fields": None
        if values is None
        else {name: value for name, value in values.items() if name not in mask.fields},
        "text": None if text is None else text.decode(errors="replace"),
        "reply": None if is_refused or sample.answer is None else _shown_reply(sample.answer, mask),
        "problem": _shown_problem(sample.answer, mask) if is_refused and sample.answer is not None else None,
    }


def _shown_reply(answer: bytes, mask: Mask) -> dict[str, Any]:
    found = _reply(answer)
    return {
        "id": None if mask.covers_id else found.id,
        "time": None if mask.covers_time else found.time,
        "metrics": {name: value for name, value in found.metrics.items() if name not in mask.metrics},
        **{
            name: value
            for name in _NOTES
            if (value := getattr(found, name)) is not msgspec.UNSET
            and not (name == "partial" and mask.covers_time)
        },
    }


def _shown_problem(answer: bytes, mask: Mask) -> dict[str, Any]:
    found = _problem(answer)
    if mask.shows_texts:
        return found
    return {"title": found["title"], "status": found["status"], "detail": None, "errors": []}


def _values_of_texts(samples: Sequence[Sample], fields: EventFields) -> dict[int, dict[str, Any]]:
    """Return the fields of accepted events that came as texts, by the samples' numbers."""
    by_mapping: dict[int, list[tuple[int, bytes]]] = {}
    for each in samples:
        if each.status == 200 and each.text is not None:
            by_mapping.setdefault(each.mapped, []).append((each.number, each.text))
    found = dict[int, dict[str, Any]]()
    for mapped, taken in by_mapping.items():
        for (number, _), values in zip(taken, fields.of_texts([text for _, text in taken], mapped)):
            if values is not None:
                found[number] = values
    return found
