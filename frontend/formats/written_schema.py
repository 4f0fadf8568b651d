"""A schema as a registry has it."""

from dataclasses import dataclass

AVRO, JSON_SCHEMA, PROTOBUF = "AVRO", "JSON", "PROTOBUF"


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """A schema as it is registered.

    kind: AVRO, JSON_SCHEMA or PROTOBUF.
    text: the schema; of Protobuf the file's descriptor in base64.
    references: name and text of the schemas that it refers to, each behind those that it refers to itself. Those of
        JSON Schema are left out.
    """

    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """How many characters it has in all."""
        return len(self.text) + sum(len(text) for _, text in self.references)
