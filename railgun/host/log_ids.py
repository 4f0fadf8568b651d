"""Asks for the ids of the topics of tasks' logs. A topic that was deleted and made again under its name has another id.

A host compares the id when it opens a task, and a unit does now and then.
"""

import threading
from collections.abc import Callable

from railgun.messaging.errors import TopicMissingError
from railgun.messaging.transport import Transport
from railgun.task.errors import LogReplacedError

# Tasks that are opened within this time share an answer: hundreds of them may be opened together.
_FRESH_S = 1.0


class LogIds:
    """Asks for the ids of topics, once for all tasks that need one at a time. Any thread may call every method.

    now_s: returns the seconds of a clock that never goes back.
    """

    def __init__(self, transport: Transport, now_s: Callable[[], float]) -> None:
        self._transport, self._now_s = transport, now_s
        self._known: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def of(self, topic: str) -> str:
        """Return the id of a topic as it was a moment ago; empty if it has none. Raises TransportError."""
        return self._of(topic, _FRESH_S)

    def ask(self, topic: str) -> str:
        """Return the id of a topic as it is now; empty if it has none. Raises TransportError."""
        return self._of(topic, 0.0)

    def _of(self, topic: str, fresh_s: float) -> str:
        with self._lock:
            now_s, known = self._now_s(), self._known.get(topic)
            if known is not None and now_s - known[0] < fresh_s:
                return known[1]
            found = self._transport.topic_ids([topic])
            if topic not in found:
                raise TopicMissingError(topic)
            self._known[topic] = now_s, found[topic]
            return found[topic]


def check_same(place: str, position: int, topic_id: str, present: str) -> None:
    """Raise LogReplacedError if a state was made of the records of another topic than the present one.

    place: names the state in errors.
    position: the offset of the record that it needs next. A state without a record fits every log.
    topic_id: the id of the topic that the state was made of; empty if that is not known.
    present: the id of the topic now; empty if it has none.
    """
    if position > 0 and topic_id and present and topic_id != present:
        reason = (
            f"its state was made of another topic (id {topic_id}) than the one that has its name now (id {present}): "
            "the topic was deleted and made anew"
        )
        raise LogReplacedError(place, reason, topic_id)
