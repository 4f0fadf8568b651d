"""Asks a schema registry for schemas, by Confluent's protocol, within limits of size and time."""

import json
from collections.abc import Mapping
from time import monotonic
from typing import Any
from urllib.parse import quote

import httpx

from frontend.formats.errors import UnknownSchemaError
from frontend.formats.framing import SchemaId
from frontend.formats.written_schema import AVRO, JSON_SCHEMA, PROTOBUF, WrittenSchema
from railgun.config.kinds import ConfigError
from railgun.messaging.errors import TransportUnavailableError
from railgun.urls import address_of, shown_url
from railgun.wire.path import has_lone_surrogate
from railgun.wording import listed

SIZE_LIMIT_BYTES = 4 << 20
"""The most that a schema may have, together with those that it refers to."""

# A schema with all that it refers to.
_REFERENCES_MAX, _TIMEOUT_S = 200, 10.0
# Of a subject, which is in a URL, and of a name.
_NAME_MAX = 1_000
# Of other formats than Protobuf it changes nothing.
_QUERY = {"format": "serialized"}


class SchemaRegistry:
    """A schema registry. Not to be shared between threads.

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
        self._http = httpx.Client(
            base_url=parsed, auth=credentials, timeout=_TIMEOUT_S, headers={"Accept-Encoding": "identity"}
        )

    def ask(self, schema_id: SchemaId) -> WrittenSchema:
        """Return a schema. Raises UnknownSchemaError; TransportUnavailableError if it cannot be read now."""
        return _Question(self._http, self._place, schema_id).answer()


class _Question:
    """One schema that is asked for, with all that it refers to."""

    def __init__(self, http: httpx.Client, place: str, schema_id: SchemaId) -> None:
        self._http, self._place, self._id = http, place, schema_id
        self._deadline_s = monotonic() + _TIMEOUT_S
        self._left_bytes = SIZE_LIMIT_BYTES
        self._found: dict[tuple[str, int], tuple[str, str]] = {}

    def answer(self) -> WrittenSchema:
        kind = "ids" if isinstance(self._id, int) else "guids"
        body = self._get(f"/schemas/{kind}/{self._id}", f"schema {self._id}")
        written = body.get("schemaType") or AVRO
        if written not in (AVRO, JSON_SCHEMA, PROTOBUF):
            raise UnknownSchemaError(
                f"schema {self._id} is {str(written)[:40]}; Avro, JSON Schema and Protobuf are read"
            )
        if written != JSON_SCHEMA:
            self._refer(body, ())
        return WrittenSchema(written, self._text(body), tuple(self._found.values()))

    def _refer(self, body: Mapping[str, Any], above: tuple[tuple[str, int], ...]) -> None:
        """Find the schemas that a schema refers to. above: the schemas that refer to it."""
        references = body.get("references") or []
        if not isinstance(references, list):
            raise self._unusable("its references are no list")
        for each in references:
            name, subject, version = self._reference(each)
            key = subject, version
            if key in above:
                circle = [f"{subject} {version}" for subject, version in (*above, key)]
                raise self._unusable(f"its references go in a circle: {listed(circle)}")
            if key in self._found:
                continue
            if len(self._found) + len(above) >= _REFERENCES_MAX:
                raise self._unusable(f"it refers to more than {_REFERENCES_MAX} others")
            if any(name == other for other, _ in self._found.values()):
                raise self._unusable(f"it refers to two others that are called {name[:200]}")
            what = f"schema {self._id}, which refers to {subject[:200]} {version},"
            found = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}", what)
            self._refer(found, (*above, key))
            self._found[key] = name, self._text(found)

    def _reference(self, said: object) -> tuple[str, str, int]:
        match said:
            case {"name": str(name), "subject": str(subject), "version": int(version)}:
                if not (_is_name(name) and _is_name(subject)):
                    raise self._unusable(
                        f"a reference has a name or subject that is longer than {_NAME_MAX} characters, or no Unicode"
                    )
                return name, subject, version
        raise self._unusable("a reference has no name, subject and version")

    def _text(self, body: Mapping[str, Any]) -> str:
        text = body.get("schema")
        if not isinstance(text, str):
            raise self._unusable("the schema registry's answer has no schema")
        return text

    def _unusable(self, why: str) -> UnknownSchemaError:
        return UnknownSchemaError(f"schema {self._id}: {why}")

    def _get(self, path: str, what: str) -> Mapping[str, Any]:
        """Return an answer of the registry. what: what is asked for, in words."""
        try:
            with self._http.stream("GET", path, params=_QUERY) as response:
                if response.status_code == httpx.codes.NOT_FOUND:
                    raise UnknownSchemaError(f"the schema registry knows no {what.rstrip(',')}")
                if response.status_code != httpx.codes.OK:
                    raise self._away(f"status {response.status_code}")
                body = json.loads(self._content(response))
        except (httpx.HTTPError, ValueError, RecursionError) as error:
            if isinstance(error, UnknownSchemaError):
                raise
            raise self._away(str(error) or type(error).__name__) from error
        if not isinstance(body, dict):
            raise self._away("its answer is no JSON object")
        return body

    def _content(self, response: httpx.Response) -> bytes:
        """Return the bytes of an answer, however slowly they come, and however many they are: up to a limit."""
        data = bytearray()
        # As they come: pieces of a size would be waited for.
        for piece in response.iter_raw():
            data += piece
            if len(data) > self._left_bytes:
                raise self._unusable(f"it has more than {SIZE_LIMIT_BYTES >> 20} MiB, with what it refers to")
            if monotonic() > self._deadline_s:
                raise self._away(f"it is not there after {_TIMEOUT_S:g} s")
        self._left_bytes -= len(data)
        return bytes(data)

    def _away(self, why: str) -> TransportUnavailableError:
        remedy = "Check that the schema registry runs and input.schema_registry_url is right"
        return TransportUnavailableError(self._place, f"schema {self._id}: {why}", remedy)


def _is_name(text: str) -> bool:
    """Return whether a text can be in a URL. One with half of a surrogate pair cannot be encoded."""
    return len(text) <= _NAME_MAX and not has_lone_surrogate(text)
