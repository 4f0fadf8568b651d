"""Reads the options of a scoring request from the query of its URL. The scoring route and `single_events` call it.

It does no I/O.
"""

from dataclasses import dataclass
from functools import lru_cache

from frontend.scoring.scoring import StreamView
from frontend.url_query import metrics_of, pairs_of, timeout_of, wrong_parameter
from railgun.catalog.errors import no_metric
from railgun.language.errors import nearest

KNOWN_BYTES_MAX = 1024
"""Longer queries and URLs are not kept once they are read, so that a client cannot fill the memory with them."""
_PARAMETERS = ("metrics", "on_timeout", "reply", "timeout_ms")
ON_TIMEOUT = ("error", "partial")


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """The options of a scoring request.

    metrics: only these; None selects all.
    reply: whether replies are wanted.
    timeout_ms: how long to wait for an answer; None: the server's time limit.
    takes_partial: once that time is over, the results that have come are an answer.
    """

    metrics: tuple[str, ...] | None = None
    reply: bool = True
    timeout_ms: int | None = None
    takes_partial: bool = False


def read_options(query: bytes) -> ScoreOptions:
    """Read a query string. Raises ProblemError (400, 422)."""
    return (_known_options if len(query) <= KNOWN_BYTES_MAX else _options)(query)


def _options(query: bytes) -> ScoreOptions:
    if not query:
        return ScoreOptions()
    metrics: tuple[str, ...] | None = None
    reply, timeout_ms, takes_partial = True, None, False
    seen: set[str] = set()
    for name, value in pairs_of(query):
        if name in seen:
            raise wrong_parameter(name, "it is there twice")
        seen.add(name)
        match name:
            case "metrics":
                metrics = metrics_of(value)
            case "reply":
                if value not in ("none", "all"):
                    raise wrong_parameter(name, f"{value[:40]!r} is neither none nor all")
                reply = value == "all"
            case "timeout_ms":
                timeout_ms = timeout_of(value)
            case "on_timeout":
                if value not in ON_TIMEOUT:
                    raise wrong_parameter(name, f"{value[:40]!r} is neither {' nor '.join(ON_TIMEOUT)}", 400)
                takes_partial = value == "partial"
            case _:
                near = nearest(name, _PARAMETERS)
                hint = f"did you mean {near}?" if near else f"there are {', '.join(_PARAMETERS)}"
                raise wrong_parameter(name[:80], f"there is no such parameter; {hint}")
    return ScoreOptions(metrics, reply, timeout_ms, takes_partial)


_known_options = lru_cache(maxsize=1024)(_options)


def check_metrics(options: ScoreOptions, view: StreamView) -> None:
    """Raise ProblemError (422) if a metric is asked for that the stream does not have."""
    for name in options.metrics or ():
        if name not in view.metrics:
            raise wrong_parameter("metrics", no_metric(view.definition.name, name, view.metrics))
