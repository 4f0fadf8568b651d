"""Finds Avro schemas by the ids that records name: in a schema registry, or in one file for all ids."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import httpx

from railgun.config.kinds import ConfigError
from railgun.config.settings import InputSettings
from railgun.messaging.errors import TransportUnavailableError
from railgun.urls import address_of, shown_url

_NONE = "none"
_TIMEOUT_S, _UNKNOWN_S = 10.0, 10.0

SchemaId = int | str
"""An id is a number, or a GUID as text."""


class UnknownSchemaError(ValueError):
    """No usable schema has this id. The message says why."""


class Schemas(Protocol):
    """A source of schemas."""

    def schema(self, schema_id: SchemaId) -> Any:
        """Return a schema as JSON. Raises UnknownSchemaError; TransportUnavailableError if it cannot be read now."""


def schemas_of(settings: InputSettings) -> Schemas | None:
    """Return the source that the configuration names. Raises ConfigError if it cannot be used."""
    if settings.schema_registry_url != _NONE:
        if settings.schema_file != _NONE:
            raise ConfigError("input.schema_registry_url and input.schema_file", "one of them, not both")
        return SchemaRegistry(settings.schema_registry_url)
    return None if settings.schema_file == _NONE else SchemaFile(Path(settings.schema_file))


class SchemaFile:
    """Has one schema for all records, whatever id they name. Raises ConfigError if the file holds none."""

    def __init__(self, path: Path) -> None:
        try:
            self._schema = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError("input.schema_file", f"{path}: no Avro schema: {error}") from error

    def schema(self, schema_id: SchemaId) -> Any:
        return self._schema


class SchemaRegistry:
    """Asks a schema registry by Confluent's protocol. Schemas that were found are kept, since they never change.

    url: http:// or https://, with user and password if they are needed.  Raises ConfigError for any other.
    """

    def __init__(self, url: str) -> None:
        place, shown = "input.schema_registry_url", shown_url(url)[:80]
        try:
            plain, credentials = address_of(url)
            parsed = httpx.URL(plain)
        except (httpx.InvalidURL, ValueError) as error:
            # Without its cause: a trace would show the password in the URL.
            raise ConfigError(place, f"{shown!r}: {error}") from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ConfigError(place, f"{shown!r} is no http:// or https:// address")
        self._place = f"{parsed.scheme}://{parsed.netloc.decode()}"
        # User and password are handed over apart from the URL, since errors and logs name the URL.
        self._http = httpx.Client(base_url=parsed, auth=credentials, timeout=_TIMEOUT_S)
        self._known: dict[SchemaId, Any] = {}
        self._unknown: dict[SchemaId, tuple[float, str]] = {}

    def schema(self, schema_id: SchemaId) -> Any:
        if schema_id in self._known:
            return self._known[schema_id]
        until_s, why = self._unknown.get(schema_id, (0.0, ""))
        if time.monotonic() < until_s:
            raise UnknownSchemaError(why)
        try:
            found = self._known[schema_id] = self._ask(schema_id)
        except UnknownSchemaError as error:
            self._unknown[schema_id] = (time.monotonic() + _UNKNOWN_S, str(error))
            raise
        return found

    def _ask(self, schema_id: SchemaId) -> Any:
        kind = "ids" if isinstance(schema_id, int) else "guids"
        try:
            response = self._http.get(f"/schemas/{kind}/{schema_id}")
            if response.status_code == httpx.codes.NOT_FOUND:
                raise UnknownSchemaError(f"the schema registry knows no schema {schema_id}")
            body = response.raise_for_status().json()
            return self._read(schema_id, body)
        except UnknownSchemaError:
            raise
        except httpx.HTTPStatusError as error:
            raise self._away(schema_id, f"status {error.response.status_code}") from error
        except (httpx.HTTPError, ValueError) as error:
            raise self._away(schema_id, str(error)) from error

    def _away(self, schema_id: SchemaId, why: str) -> TransportUnavailableError:
        remedy = "Check that the schema registry runs and input.schema_registry_url is right"
        return TransportUnavailableError(self._place, f"schema {schema_id}: {why}", remedy)

    def _read(self, schema_id: SchemaId, body: Mapping[str, Any]) -> Any:
        kind = body.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise UnknownSchemaError(f"schema {schema_id} is {str(kind)[:40]}; Avro and JSON are read")
        if body.get("references"):
            raise UnknownSchemaError(f"schema {schema_id} refers to others; register it as one")
        return json.loads(body["schema"])
