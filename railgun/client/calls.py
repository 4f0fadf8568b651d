"""The methods of the client library for programs: events, values, streams and metrics.

Each public function is a method of both `Client` and `AsyncClient`, whose shells carry out its steps
(`railgun/client/steps.py`). Every call raises ClientError.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import quote, urlencode

import msgspec

from railgun.client.address import stream_path
from railgun.client.attempts import MayRepeat, repeat_change, repeat_events, repeat_read, send_until_answered
from railgun.client.events import event_json, events_json, keys_json
from railgun.client.lines import answered_lines
from railgun.client.replies import (
    EventAnswer,
    KeyValues,
    Reply,
    event_answers,
    reply_of,
    table_of,
    tables_of,
)
from railgun.client.steps import JSON_TYPE, Answer, Request, Session, Steps, send_once

OnTimeout: TypeAlias = Literal["error", "partial"]

_OK = 200
# A server may answer just at the time limit of the event. The client waits this much longer for the answer.
_BEYOND_S = 5.0


# --- events ----------------------------------------------------------------------------------------


def score(
    session: Session,
    stream: str,
    event: Mapping[str, Any],
    *,
    metrics: Sequence[str] | None = None,
    timeout_ms: int | None = None,
    on_timeout: OnTimeout | None = None,
) -> Steps[Reply]:
    """Send an event and return its reply, as `Engine.score` does. Raises ProblemError if it is refused.

    event: values as in JSON. A timestamp may be a datetime with a time zone, and a decimal a Decimal.
    metrics: the names of the metrics to return; None selects all.
    timeout_ms: the time limit for the answer. After it, ProblemError with status 504 is raised.
    on_timeout: "partial" returns a reply at the time limit that names the `missing` partitioners.
    """
    path = _events_path(stream, metrics, timeout_ms, on_timeout)
    request = Request("POST", path, event_json(event), JSON_TYPE, _timeout_s(session, timeout_ms))
    answer = yield from send_until_answered(session, request, repeat_events(stream, 1))
    return reply_of(answer.content, session.place(path))


def score_batch(
    session: Session,
    stream: str,
    events: Sequence[Mapping[str, Any]],
    *,
    metrics: Sequence[str] | None = None,
    timeout_ms: int | None = None,
    on_timeout: OnTimeout | None = None,
) -> Steps[list[EventAnswer]]:
    """Send events in one request, and return an answer for each, in order: its reply, or a ProblemError.

    A refused event does not affect the others. A server takes at most `http.batch_limit_events` at once (10,000 by
    default); `score_all` takes any number. The parameters are those of `score`.
    """
    path = _events_path(stream, metrics, timeout_ms, on_timeout)
    request = Request("POST", path, events_json(events), JSON_TYPE, _timeout_s(session, timeout_ms))
    answer = yield from send_until_answered(session, request, repeat_events(stream, len(events)))
    return event_answers(answer.content, session.place(path), len(events))


def score_lines(
    session: Session, stream: str, lines: bytes, *, metrics: Sequence[str] | None = None
) -> Steps[bytes]:
    """Send events that are already JSON, one on each line, and return a line for each: its reply or a problem.

    If an error is raised, its `answered` has the answers that came before it, as lines.
    """
    path = _events_path(stream, metrics, None, None)
    return answered_lines(session, stream, path, lines)


def _events_path(
    stream: str, metrics: Sequence[str] | None, timeout_ms: int | None, on_timeout: str | None
) -> str:
    query = {
        "metrics": None if metrics is None else ",".join(metrics),
        "timeout_ms": timeout_ms,
        "on_timeout": on_timeout,
    }
    given = urlencode({name: value for name, value in query.items() if value is not None})
    return f"{stream_path(stream)}/events{'?' if given else ''}{given}"


def _timeout_s(session: Session, timeout_ms: int | None) -> float:
    return session.timeout_s if timeout_ms is None else max(session.timeout_s, timeout_ms / 1000 + _BEYOND_S)


# --- values without an event -----------------------------------------------------------------------


def values(
    session: Session, stream: str, keys: Sequence[Mapping[str, Any]], metrics: Sequence[str] | None = None
) -> Steps[list[KeyValues]]:
    """Return the current metrics of keys, as `Engine.values` does, without an event.

    keys: each maps fields to their values.  metrics: the names to return; None asks for all that each key determines.
    """
    path = f"{stream_path(stream)}/values"
    answer = yield from _send(session, "POST", path, keys_json(keys, metrics), repeat_read)
    return cast(list[KeyValues], tables_of(answer.content, session.place(path)))


def values_of_text(
    session: Session, stream: str, key: Mapping[str, str], metrics: str | None = None
) -> Steps[KeyValues]:
    """Return the current metrics of one key.

    key: values as text, read like those of a CSV file.  metrics: names, joined by commas; None selects all.
    """
    query = urlencode({**key, **({} if metrics is None else {"metrics": metrics})})
    return cast(KeyValues, (yield from read_table(session, f"{stream_path(stream)}/values?{query}")))


# --- dead letters ----------------------------------------------------------------------------------


def dead(
    session: Session,
    stream: str,
    *,
    limit: int | None = None,
    within_ms: int | None = None,
    kind: str | None = None,
    reason: str | None = None,
    before: str | None = None,
) -> Steps[dict[str, Any]]:
    """Return the newest dead letters of a stream as `letters`, and as `before` where an earlier part begins.

    limit: how many at most.  within_ms: how long the server may read.
    kind: "refused", "late", "damaged" or "other".  reason: a text that the reason has.
    before: `before` of an earlier answer; it is None in the last one.
    """
    asked = {"limit": limit, "within_ms": within_ms, "kind": kind, "reason": reason, "before": before}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    return read_table(session, f"{stream_path(stream)}/dead{'?' if query else ''}{query}")


def samples(
    session: Session, stream: str, *, limit: int | None = None, after: int | None = None
) -> Steps[dict[str, Any]]:
    """Return the last events of a stream with their replies, the newest first. The front-end that answers keeps them.

    limit: how many at most; None: the server's default.
    after: only events with a number above this one.
    """
    given = {"limit": limit, "after": after}
    query = urlencode({name: value for name, value in given.items() if value is not None})
    return read_table(session, f"{stream_path(stream)}/samples{'?' if query else ''}{query}")


# --- streams and metrics ---------------------------------------------------------------------------


def streams(session: Session) -> Steps[list[dict[str, Any]]]:
    """Return the definitions of all streams that the token may read."""
    return read_tables(session, "/v1/streams", "streams")


def stream(session: Session, name: str) -> Steps[dict[str, Any]]:
    """Return the definition of a stream."""
    return read_table(session, stream_path(name))


def metrics(session: Session, stream: str) -> Steps[list[dict[str, Any]]]:
    """Return a stream's metrics, each with name, sql, home, warming and filled."""
    return read_tables(session, f"{stream_path(stream)}/metrics", "metrics")


def plan(session: Session, stream: str) -> Steps[dict[str, Any]]:
    """Return what a stream's metrics share: windows, filters, groups and cells, as `railgun explain --format json`."""
    return read_table(session, f"{stream_path(stream)}/plan")


def answered(session: Session, stream: str, metric: str) -> Steps[dict[str, Any]]:
    """Return what a metric was answered lately, from some of the last replies: nulls, quantiles, a histogram."""
    return read_table(session, f"{stream_path(stream)}/metrics/{quote(metric, safe='')}/answered")


def create_stream(session: Session, definition: Mapping[str, Any]) -> Steps[None]:
    """Register a stream, with its metrics. A stream that exists already stays as it is, and gets the metrics it lacks.

    definition: as in docs/http.md. `metrics`, a list of queries, are registered with the stream, all or nothing. So no
        event is answered without them, also not a record that its input topics have already.
    """
    yield from change(session, "POST", "/v1/streams", definition)


def evolve_stream(session: Session, stream: str, changes: Mapping[str, Any]) -> Steps[None]:
    """Change a stream.

    changes: new `fields`, computed ones that are None to drop them, `lateness`, `retention`, `log_retention`, `input`
        and `output`. None takes back what was said of the last three.
    """
    yield from change(session, "PATCH", stream_path(stream), changes)


def drop_stream(session: Session, stream: str) -> Steps[None]:
    """Drop a stream, with its metrics and all its events."""
    yield from change(session, "DELETE", stream_path(stream))


def add_metrics(session: Session, stream: str, sql: str) -> Steps[list[dict[str, Any]]]:
    """Register the metrics of a query, and return them. Replies have their values once they are no longer `warming`."""
    answer = yield from change(session, "POST", f"{stream_path(stream)}/metrics", {"sql": sql})
    return tables_of(answer.content, session.place(stream_path(stream)), "metrics")


def drop_metric(session: Session, stream: str, name: str) -> Steps[None]:
    """Drop a metric."""
    yield from change(session, "DELETE", f"{stream_path(stream)}/metrics/{quote(name, safe='')}")


# --- the server ------------------------------------------------------------------------------------


def whoami(session: Session) -> Steps[dict[str, Any]]:
    """Return the token's name, scopes, expiry and limit."""
    return read_table(session, "/v1/whoami")


def status(session: Session) -> Steps[dict[str, Any]]:
    """Return the status of the server: its streams, with their metrics and tasks, and the disk."""
    return read_table(session, "/v1/status")


def live(session: Session) -> Steps[dict[str, Any]]:
    """Return how the server stands now: rates, latencies and warming metrics of each stream that the token may read,
    and with the scope `metrics` the process and the cluster. Ask once a second at most: it does not change sooner.
    """
    return read_table(session, "/v1/live")


def is_ready(session: Session) -> Steps[bool]:
    """Return True if the server is ready: it has recovered and compiled. Asks once.

    Raises UnreachableError if no server listens.
    """
    outcome = yield from send_once(Request("GET", "/readyz", b"", JSON_TYPE, session.timeout_s))
    if isinstance(outcome, Answer):
        return outcome.status == _OK
    raise outcome.error


# --- parts of these and the operators' calls ------------------------------------------------------


def read_table(session: Session, path: str) -> Steps[dict[str, Any]]:
    """Read the object at a path."""
    answer = yield from _send(session, "GET", path, b"", repeat_read)
    return table_of(answer.content, session.place(path))


def read_tables(session: Session, path: str, name: str) -> Steps[list[dict[str, Any]]]:
    """Read the list of objects at a path. The body is the list, or an object that has the list under `name`."""
    answer = yield from _send(session, "GET", path, b"", repeat_read)
    return tables_of(answer.content, session.place(path), name)


def read_bytes(session: Session, path: str) -> Steps[bytes]:
    """Read what is at a path, as it is."""
    answer = yield from _send(session, "GET", path, b"", repeat_read)
    return answer.content


def change(session: Session, method: str, path: str, body: Mapping[str, Any] | None = None) -> Steps[Answer]:
    """Request a change. It is not repeated if the connection is lost."""
    content = b"" if body is None else msgspec.json.encode(body)
    return (yield from _send(session, method, path, content, repeat_change))


def _send(session: Session, method: str, path: str, content: bytes, repeat: MayRepeat) -> Steps[Answer]:
    return send_until_answered(session, Request(method, path, content, JSON_TYPE, session.timeout_s), repeat)
