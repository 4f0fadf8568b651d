"""Reads dead letters: whose they are, of which kind, and what people are shown of them."""

import base64
import codecs
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Message

from frontend.backend.letters import SHOWN_BYTES, LetterKind, LetterRequest
from railgun.catalog.catalog import Catalog
from railgun.catalog.model import StreamDefinition
from railgun.messaging.kafka.backwards import HeaderValue, headers_of
from railgun.registry.topics import Topics

_HEADERS_MAX = 64
# As much is shown of the values of all headers of a letter together.
_HEADERS_BYTES = 2 * SHOWN_BYTES
_NAME_MAX = 249


class LetterReader:
    """The letters of one stream."""

    def __init__(self, stream: StreamDefinition, catalog: Catalog, topics: Topics) -> None:
        self._stream, self._task_topics = stream.name, frozenset(topics.of_tasks(stream))
        self._is_reserved = topics.is_reserved
        self.topics = tuple(dict.fromkeys((topics.dead_of(stream), topics.dead(stream.name))))
        others = [each.stream for each in catalog.streams.values() if each.stream.name != stream.name]
        self._shared = frozenset(
            topic for other in others for topic in (topics.dead_of(other), topics.dead(other.name))
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
            "headers": _shown_headers(message),
        }

    def masked(self, message: Message) -> dict[str, Any]:
        """Return a letter of a stream with a mask: its place and its kind alone."""
        return self._place(message, _headers(message)) | {
            "reason": None,
            "key": None,
            "value": None,
            "headers": [],
        }

    def _place(self, message: Message, headers: Mapping[str, HeaderValue]) -> dict[str, Any]:
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

    def _is_own(self, message: Message, headers: Mapping[str, HeaderValue]) -> bool:
        if "stream" in headers:
            return _text(headers["stream"]) == self._stream
        # A letter of an earlier release, or of another program, does not say whose it is.
        log = _text(headers.get("topic")) or ""
        if log in self._task_topics or self._is_reserved(log):
            return log in self._task_topics
        return message.topic() not in self._shared

    def _kind(self, headers: Mapping[str, HeaderValue]) -> LetterKind:
        if "reason" not in headers:
            return LetterKind.OTHER
        if "late" in headers:
            return LetterKind.LATE
        return LetterKind.DAMAGED if _text(headers.get("topic")) in self._task_topics else LetterKind.REFUSED


def _shown_headers(message: Message) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    left = _HEADERS_BYTES
    for name, value in (headers_of(message) or [])[:_HEADERS_MAX]:
        shown.append({"name": name[:_NAME_MAX], "value": _payload(value, min(left, SHOWN_BYTES))})
        left = max(0, left - len(value or b""))
    return shown


def _headers(message: Message) -> dict[str, HeaderValue]:
    """Return the first value of each header."""
    found: dict[str, HeaderValue] = {}
    for name, value in headers_of(message) or []:
        found.setdefault(name, value)
    return found


def _text(value: HeaderValue) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value[:SHOWN_BYTES].decode(errors="replace")


def _number(value: HeaderValue, otherwise: int | None) -> int | None:
    """Return the number in a header; `otherwise` if it has none, since any program may have written it."""
    if isinstance(value, bytes) and len(value) <= 18 and value.isdigit():
        return int(value)
    return otherwise


def _payload(value: HeaderValue, most: int = SHOWN_BYTES) -> dict[str, Any] | None:
    """Return bytes as text, or in base64 where they are no UTF-8, with their number; `most` of them."""
    if value is None:
        return None
    content = value.encode() if isinstance(value, str) else value
    shown, is_cut = content[:most], len(content) > most
    made: dict[str, Any] = {"bytes": len(content), "cut": is_cut, "text": None, "base64": None}
    try:
        # A character that the cut divides is left out.
        made["text"] = codecs.getincrementaldecoder("utf-8")().decode(shown, final=not is_cut)
    except UnicodeDecodeError:
        made["base64"] = base64.b64encode(shown).decode()
    return made
