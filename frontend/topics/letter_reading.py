"""Reads dead letters: whose they are, of which kind, and what people are shown of them."""

import base64
import codecs
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Message

from frontend.backend.letters import SHOWN_BYTES, LetterKind, LetterRequest
from railgun.catalog.catalog import Catalog
from railgun.catalog.model import StreamDefinition
from railgun.registry.topics import Topics

_HEADERS_MAX = 64
_NAME_MAX = 249

Value = bytes | str | None
"""The value of a header."""


class LetterReader:
    """The letters of one stream."""

    def __init__(self, stream: StreamDefinition, catalog: Catalog, topics: Topics) -> None:
        self._stream, self._task_topics = stream.name, frozenset(topics.of_tasks(stream))
        self.topics = tuple(dict.fromkeys((topics.dead_of(stream), topics.dead(stream.name))))
        # A letter of an earlier release does not say whose it is.
        self._shared = frozenset(
            topics.dead_of(other.stream)
            for other in catalog.streams.values()
            if other.stream.name != stream.name
        )

    def is_wanted(self, asked: LetterRequest) -> Callable[[Message], bool]:
        """Return a function that says whether a record is a letter of the stream that is asked for."""
        text = None if asked.reason is None else asked.reason.casefold()

        def is_wanted(message: Message) -> bool:
            headers = _headers(message)
            if not self._is_own(message, headers):
                return False
            if asked.kind is not None and self._kind(headers) is not asked.kind:
                return False
            return text is None or text in (_text(headers.get("reason")) or "").casefold()

        return is_wanted

    def shown(self, message: Message) -> dict[str, Any]:
        """Return a letter as the route answers it."""
        headers = _headers(message)
        return {
            **self._place(message, headers),
            "reason": None if "reason" not in headers else _text(headers["reason"]),
            "key": _payload(message.key()),
            "value": _payload(message.value()),
            "headers": [
                {"name": name[:_NAME_MAX], "value": _payload(value)}
                for name, value in _written(message)[:_HEADERS_MAX]
            ],
        }

    def masked(self, message: Message) -> dict[str, Any]:
        """Return a letter of a stream with a mask: its place and its kind alone."""
        return self._place(message, _headers(message)) | {
            "reason": None,
            "key": None,
            "value": None,
            "headers": [],
        }

    def _place(self, message: Message, headers: Mapping[str, Value]) -> dict[str, Any]:
        late = _text(headers.get("late"))
        return {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "time_ms": _number(headers.get("time"), message.timestamp()[1]),
            "kind": self._kind(headers).value,
            "late": None if late is None else late.split(","),
            "record": {
                "topic": (_text(headers["topic"]) or "")[:_NAME_MAX],
                "partition": _number(headers.get("partition"), None),
                "offset": _number(headers.get("offset"), None),
            }
            if "topic" in headers
            else None,
        }

    def _is_own(self, message: Message, headers: Mapping[str, Value]) -> bool:
        if "stream" in headers:
            return _text(headers["stream"]) == self._stream
        return message.topic() not in self._shared

    def _kind(self, headers: Mapping[str, Value]) -> LetterKind:
        if "reason" not in headers:
            return LetterKind.OTHER
        if "late" in headers:
            return LetterKind.LATE
        return LetterKind.DAMAGED if _text(headers.get("topic")) in self._task_topics else LetterKind.REFUSED


def _headers(message: Message) -> dict[str, Value]:
    """Return the first value of each header."""
    found: dict[str, Value] = {}
    for name, value in _written(message):
        found.setdefault(name, value)
    return found


def _written(message: Message) -> list[tuple[str, Value]]:
    """Return the headers of a record; none if their names are no UTF-8, as another program may write them."""
    try:
        found = message.headers()
    except UnicodeDecodeError:
        return []
    return found if isinstance(found, list) else []


def _text(value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value[:SHOWN_BYTES].decode(errors="replace")


def _number(value: Value, otherwise: int | None) -> int | None:
    """Return the number in a header; `otherwise` if it has none, since any program may have written it."""
    if isinstance(value, bytes) and len(value) <= 18 and value.isdigit():
        return int(value)
    return otherwise


def _payload(value: Value) -> dict[str, Any] | None:
    """Return bytes as text, or in base64 where they are no UTF-8, with their number; cut if they are long."""
    if value is None:
        return None
    content = value.encode() if isinstance(value, str) else value
    shown, is_cut = content[:SHOWN_BYTES], len(content) > SHOWN_BYTES
    made: dict[str, Any] = {"bytes": len(content), "cut": is_cut, "text": None, "base64": None}
    try:
        # A character that the cut divides is left out.
        made["text"] = codecs.getincrementaldecoder("utf-8")().decode(shown, final=not is_cut)
    except UnicodeDecodeError:
        made["base64"] = base64.b64encode(shown).decode()
    return made
