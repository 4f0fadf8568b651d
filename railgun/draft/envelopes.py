"""Recognises envelopes: Debezium's change events, and Kafka Connect's JSON with a schema."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from railgun.wire.path import Step, text_of

OPERATION = "op"

# Such a share of the events has to be in an envelope, as deletes may be without.
_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Envelope:
    """What events are wrapped in.

    inside: the path to the part that Connect calls the payload; empty without Connect's envelope.
    is_change: whether that part is a change of a row, by Debezium.
    """

    inside: tuple[Step, ...] = ()
    is_change: bool = False

    @property
    def operation(self) -> tuple[Step, ...]:
        """The path to what was done with a row, in changes of rows."""
        return (*self.inside, OPERATION)

    @property
    def note(self) -> str:
        """What a draft says of it; empty if there is none."""
        parts = []
        if self.inside:
            parts.append("Connect's envelope, whose schema is left out")
        if self.is_change:
            parts.append(
                f"Debezium's changes of rows: fields are of {text_of((*self.inside, 'after'))}, the row after the "
                "change, which a delete lacks; the row before it is left out"
            )
        return "events are in " + "; and in ".join(parts) if parts else ""

    def keeps(self, steps: Sequence[Step]) -> bool:
        """Return whether something at a path may become a field, or have some within."""
        for step, own in zip(steps, self.inside):
            if step != own:
                return False
        rest = tuple(steps[len(self.inside) :])
        if not self.is_change or not rest:
            return True
        return rest[0] in ("after", OPERATION, "ts_ms") or rest in (("source",), ("source", "ts_ms"))


def envelope_of(documents: Sequence[Mapping[str, Any]]) -> Envelope:
    """Return the envelope that the events are in, which may be none."""
    inside: tuple[Step, ...] = ()
    if _most(documents, lambda each: set(each) == {"schema", "payload"} and _is_schema(each["schema"])):
        inside = ("payload",)
        documents = [each["payload"] for each in documents if isinstance(each.get("payload"), Mapping)]
    is_change = _most(documents, lambda each: OPERATION in each and "after" in each and "before" in each)
    return Envelope(inside, is_change)


def _most(documents: Sequence[Mapping[str, Any]], is_one: Callable[[Mapping[str, Any]], bool]) -> bool:
    return bool(documents) and sum(map(is_one, documents)) >= _SHARE * len(documents)


def _is_schema(value: Any) -> bool:
    return value is None or (isinstance(value, Mapping) and "type" in value)
