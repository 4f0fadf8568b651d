"""Has the schemas of records by the ids that they name: of a schema registry, or of one file for all ids."""

import json
import logging
import threading
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Protocol

from frontend.formats.errors import SchemaPendingError, UnknownSchemaError
from frontend.formats.framing import SchemaId
from frontend.formats.written_schema import AVRO, WrittenSchema
from railgun.config.kinds import ConfigError
from railgun.config.settings import InputSettings
from railgun.messaging.errors import TransportUnavailableError

if TYPE_CHECKING:
    from frontend.formats.schema_registry import SchemaRegistry

_NONE = "none"
_UNKNOWN_S = 10.0
_AGAIN_S, _AGAIN_MAX_S = 0.5, 10.0
# What nobody has asked for during this time is not looked for any more.
_WANTED_S = 5.0
_KNOWN_MAX, _KNOWN_CHARACTERS = 1_000, 64 << 20

_log = logging.getLogger("railgun.frontend")


class Schemas(Protocol):
    """A source of schemas. Any thread may ask it, and none waits."""

    def schema(self, schema_id: SchemaId) -> WrittenSchema:
        """Return a schema. Raises UnknownSchemaError; SchemaPendingError if it is not there yet."""


def schemas_of(settings: InputSettings) -> Schemas | None:
    """Return the source that the configuration names. Raises ConfigError if it cannot be used."""
    if settings.schema_registry_url != _NONE:
        if settings.schema_file != _NONE:
            raise ConfigError("input.schema_registry_url and input.schema_file", "one of them, not both")
        # What asks loads an HTTP client, which takes 90 ms. Most have no registry.
        from frontend.formats.schema_registry import SchemaRegistry

        return FetchedSchemas(SchemaRegistry(settings.schema_registry_url))
    return None if settings.schema_file == _NONE else SchemaFile(Path(settings.schema_file))


class SchemaFile:
    """Has one Avro schema for all records, whatever id they name. Raises ConfigError if the file holds none."""

    def __init__(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
            json.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError("input.schema_file", f"{path}: no Avro schema: {error}") from error
        self._schema = WrittenSchema(AVRO, text)

    def schema(self, schema_id: SchemaId) -> WrittenSchema:
        return self._schema


class FetchedSchemas:
    """Asks a registry for schemas, in a thread of its own while any is wanted. It keeps them, as they never change."""

    def __init__(self, registry: "SchemaRegistry") -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._known: dict[SchemaId, WrittenSchema] = {}
        self._characters = 0
        # Why ids are of no schema, and until when that is believed.
        self._unknown: dict[SchemaId, tuple[float, str]] = {}
        # When ids were wanted the last time, in the order in which they are asked for; and why they are not there yet.
        self._wanted: dict[SchemaId, float] = {}
        self._away: dict[SchemaId, str] = {}
        self._thread: threading.Thread | None = None

    def schema(self, schema_id: SchemaId) -> WrittenSchema:
        with self._lock:
            found = self._known.get(schema_id)
            if found is not None:
                return found
            until_s, why = self._unknown.get(schema_id, (0.0, ""))
            if monotonic() < until_s:
                raise UnknownSchemaError(why)
            self._wanted[schema_id] = monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._ask, name="schemas", daemon=True)
                self._thread.start()
            raise SchemaPendingError(self._away.get(schema_id))

    def _ask(self) -> None:
        """Ask until nothing is wanted."""
        again_s = _AGAIN_S
        while (schema_id := self._next()) is not None:
            try:
                found = self._registry.ask(schema_id)
            except UnknownSchemaError as error:
                self._note_unknown(schema_id, str(error))
            except TransportUnavailableError as error:
                self._note_away(schema_id, str(error))
                sleep(again_s)
                again_s = min(2 * again_s, _AGAIN_MAX_S)
                continue
            except Exception as error:  # noqa: BLE001 - without this thread no schema would come any more
                _log.exception("a defect keeps schema %s from being had", schema_id)
                self._note_unknown(schema_id, f"schema {schema_id}: a defect: {type(error).__name__}")
            else:
                self._note(schema_id, found)
            again_s = _AGAIN_S

    def _next(self) -> SchemaId | None:
        """Return the schema to ask for now; None ends the thread."""
        with self._lock:
            least_s = monotonic() - _WANTED_S
            self._wanted = {each: asked_s for each, asked_s in self._wanted.items() if asked_s >= least_s}
            self._away = {each: why for each, why in self._away.items() if each in self._wanted}
            found = next(iter(self._wanted), None)
            if found is None:
                self._thread = None
            return found

    def _note(self, schema_id: SchemaId, found: WrittenSchema) -> None:
        with self._lock:
            if len(self._known) >= _KNOWN_MAX or self._characters + found.size > _KNOWN_CHARACTERS:
                self._known.clear()
                self._characters = 0
            self._known[schema_id] = found
            self._characters += found.size
            self._wanted.pop(schema_id, None)

    def _note_unknown(self, schema_id: SchemaId, why: str) -> None:
        with self._lock:
            if len(self._unknown) >= _KNOWN_MAX:
                self._unknown.clear()
            self._unknown[schema_id] = monotonic() + _UNKNOWN_S, why
            self._wanted.pop(schema_id, None)

    def _note_away(self, schema_id: SchemaId, why: str) -> None:
        with self._lock:
            self._away[schema_id] = why
            # Others may be had where this one is not.
            self._wanted[schema_id] = self._wanted.pop(schema_id)
