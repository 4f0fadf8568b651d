"""Events as framed Avro, each with whatever schema its values ask for, and a player that sends them so."""

import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro

from railgun.config.settings import InputSettings
from tests.frontend.formats.schema_registry import RunningRegistry
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.topics.input_player import InputPlayer

_TYPES: dict[type, str] = {bool: "boolean", int: "long", float: "double", str: "string", type(None): "null"}


def framed(body: bytes, schema_id: int = 1) -> bytes:
    """In Confluent's framing."""
    return b"\0" + schema_id.to_bytes(4, "big") + body


def encoded(event: Mapping[str, Any], schema: dict[str, Any]) -> bytes:
    """Avro without a frame."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), event)
    return out.getvalue()


class AvroInputPlayer(InputPlayer):
    """Every event whose values Avro can hold goes as Avro; each set of types has a schema in the registry."""

    def __init__(self, cluster: LocalCluster, stream: str, registry: RunningRegistry) -> None:
        super().__init__(cluster, stream, InputSettings(schema_registry_url=registry.url))
        self._registry = registry
        self._ids: dict[str, int] = {}
        self.sent_as_avro = 0

    def written(self, event: Mapping[str, Any]) -> Mapping[str, Any] | bytes:
        if any(type(value) not in _TYPES or _is_beyond_long(value) for value in event.values()):
            return event
        fields = [{"name": name, "type": _type(name, value)} for name, value in event.items()]
        schema = {"type": "record", "name": "Event", "fields": fields}
        text = json.dumps(schema)
        known = self._ids.setdefault(text, len(self._ids) + 1)
        self._registry.answers[f"/schemas/ids/{known}"] = {"schema": text}
        self.sent_as_avro += 1
        return framed(encoded(event, schema), known)


def _type(name: str, value: Any) -> Any:
    """Alone or, for every other name, in a union with null."""
    plain = _TYPES[type(value)]
    return plain if value is None or len(name) % 2 else ["null", plain]


def _is_beyond_long(value: Any) -> bool:
    return isinstance(value, int) and not -(2**63) <= value < 2**63
