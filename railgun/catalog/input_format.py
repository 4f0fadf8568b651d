"""How a stream's definition says that records of its input topic are encoded, where no framing says it."""

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from railgun.catalog.errors import DefinitionError, Location
from railgun.catalog.tables import Table

JSON, AVRO, PROTOBUF = "json", "avro", "protobuf"
SCHEMA_LIMIT_BYTES = 512 << 10
"""The largest schema that a stream's record may hold."""

_FILE_KEYS = ("format", "schema_file", "message")
_KEYS = ("format", "schema", "message")
_WHITESPACE = "\t\n\r"
_MAKE_A_SET = (
    "make a descriptor set of it, with protoc --include_imports --descriptor_set_out=FILE.desc, and name that"
)


@dataclass(frozen=True, slots=True)
class InputFormat:
    """The format of a topic's records, whose values have no framing.

    kind: JSON, AVRO or PROTOBUF.
    schema: of Avro its schema as JSON text, of Protobuf a FileDescriptorSet in base64; else empty.
    message: the full name of a record's Protobuf message; else empty.
    """

    kind: str
    schema: str = ""
    message: str = ""

    @property
    def descriptor_set(self) -> bytes:
        """The bytes of a Protobuf schema."""
        return base64.b64decode(self.schema)


@dataclass(frozen=True, slots=True)
class DefinitionsFile:
    """Where definitions are. folder: that of their file, to which `schema_file` is relative; None for a text alone."""

    folder: Path | None


def format_keys(file: DefinitionsFile | None) -> tuple[str, ...]:
    """Returns the keys of the table `input` that say the format. file: where the table is; None for a request."""
    return _KEYS if file is None else _FILE_KEYS


def format_from_table(table: Table, file: DefinitionsFile | None) -> InputFormat | None:
    """Reads the format from the table `input`; None if it says none. Raises DefinitionError.

    file: where the table is. Without one, as in a request, it has the schema itself.
    """
    return _from_request(table) if file is None else _from_file(table, file.folder)


def format_to_json(found: InputFormat) -> dict[str, str]:
    """Returns the keys of a request from which an equal format is read."""
    said = {"format": found.kind, "schema": found.schema, "message": found.message}
    return {key: each for key, each in said.items() if each}


def shown_schema(schema: str) -> str:
    """Returns a digest by which people can tell schemas apart."""
    return hashlib.blake2b(schema.encode(errors="replace"), digest_size=4).hexdigest()


def _from_file(table: Table, folder: Path | None) -> InputFormat | None:
    name, where = table.text("schema_file"), table.at("schema_file")
    if name is None:
        return _format(table, None, where)
    if folder is None:
        raise DefinitionError(
            where, "a file belongs to a definitions file; this is a text", "name the file of the definitions"
        )
    return _format(table, _content(folder / name, where), where)


def _from_request(table: Table) -> InputFormat | None:
    text, where = table.text("schema"), table.at("schema")
    if text is None:
        return _format(table, None, where)
    if table.get("format") != PROTOBUF:
        return _format(table, text.encode(errors="surrogatepass"), where)
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DefinitionError(where, "a descriptor set is in base64 here") from None
    return _format(table, content, where)


def _content(path: Path, loc: Location) -> bytes:
    """Returns what a schema file holds, or a little more than may be. Raises DefinitionError."""
    try:
        with path.open("rb") as file:
            return file.read(SCHEMA_LIMIT_BYTES + 1)
    except OSError as error:
        raise DefinitionError(loc, f"{path}: {error.strerror}") from None


def _format(table: Table, content: bytes | None, loc: Location) -> InputFormat | None:
    kind = table.choice("format", (JSON, AVRO, PROTOBUF), "")
    message = table.text("message") or ""
    if message and kind != PROTOBUF:
        raise DefinitionError(table.at("message"), "a message is of Protobuf", f'say format = "{PROTOBUF}"')
    if content is not None and kind not in (AVRO, PROTOBUF):
        raise DefinitionError(loc, f'a schema is of format "{AVRO}" or "{PROTOBUF}"', "say which")
    if not kind or kind == JSON:
        return InputFormat(kind) if kind else None
    if content is None:
        raise DefinitionError(
            table.at("format"), f"records without a framing need their {kind} schema", f"add {loc[-1]}"
        )
    if len(content) > SCHEMA_LIMIT_BYTES:
        raise DefinitionError(
            loc,
            f"the schema is larger than {SCHEMA_LIMIT_BYTES >> 10} KiB",
            "leave out what the message does not need, and source information",
        )
    return _avro(content, loc) if kind == AVRO else _protobuf(content, message, table, loc)


def _avro(content: bytes, loc: Location) -> InputFormat:
    try:
        text = content.decode("utf-8-sig")
        json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else error
        raise DefinitionError(loc, f"no Avro schema: {reason}", "it is JSON, as in an .avsc file") from None
    return InputFormat(AVRO, text)


def _protobuf(content: bytes, message: str, table: Table, loc: Location) -> InputFormat:
    if _is_text(content):
        raise DefinitionError(loc, "this is a textual .proto", _MAKE_A_SET)
    if not message:
        raise DefinitionError(
            table.loc, "the key message is missing", "it holds the full name of a record's message"
        )
    return InputFormat(PROTOBUF, base64.b64encode(content).decode(), message)


def _is_text(content: bytes) -> bool:
    """Returns whether the bytes are a text. A descriptor set has control characters: lengths and numbers of fields."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return False
    return all(each >= " " or each in _WHITESPACE for each in text)
