"""What the query of a scoring request says: which metrics, whether replies are wanted, how long to wait, what then."""

import urllib.parse
from dataclasses import dataclass
from functools import lru_cache

from frontend.problems import refusal
from frontend.scoring.backend import StreamView
from railgun.catalog.errors import meant
from railgun.language.errors import nearest

TIMEOUT_MS_MAX = 3_600_000
KNOWN_BYTES_MAX = 1024
"""Longer queries, and URLs, are read each time: whoever asks could have much memory kept for them."""
_PARAMETERS = ("metrics", "on_timeout", "reply", "timeout_ms")
ON_TIMEOUT = ("error", "partial")


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """metrics: None for all.  timeout_ms: None for the server's own.  takes_partial: once that time is over, the
    results that have come are an answer."""

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
    for name, value in _pairs(query):
        if name in seen:
            raise _wrong(name, "it is there twice")
        seen.add(name)
        match name:
            case "metrics":
                metrics = tuple(dict.fromkeys(word.strip() for word in value.split(",")))
            case "reply":
                if value not in ("none", "all"):
                    raise _wrong(name, f"{value[:40]!r} is neither none nor all")
                reply = value == "all"
            case "timeout_ms":
                timeout_ms = _timeout(value)
            case "on_timeout":
                if value not in ON_TIMEOUT:
                    raise _wrong(name, f"{value[:40]!r} is neither {' nor '.join(ON_TIMEOUT)}", 400)
                takes_partial = value == "partial"
            case _:
                near = nearest(name, _PARAMETERS)
                hint = f"did you mean {near}?" if near else f"there are {', '.join(_PARAMETERS)}"
                raise _wrong(name[:80], f"there is no such parameter; {hint}")
    return ScoreOptions(metrics, reply, timeout_ms, takes_partial)


_known_options = lru_cache(maxsize=1024)(_options)


def check_metrics(options: ScoreOptions, view: StreamView) -> None:
    """Raise ProblemError (422) where a metric is asked for that the stream does not have."""
    for name in options.metrics or ():
        if name not in view.metrics:
            hint = meant(name, view.metrics)
            detail = f"{view.definition.name} has no metric {name[:80]!r}" + (f"; {hint}" if hint else "")
            raise _wrong("metrics", detail)


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return urllib.parse.parse_qsl(
            query.decode("ascii"), keep_blank_values=True, max_num_fields=16, errors="strict"
        )
    except ValueError:
        raise refusal(422, "the query of the URL cannot be read", [(("query",), "not readable")]) from None


def _timeout(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 9 and 1 <= int(value) <= TIMEOUT_MS_MAX):
        raise _wrong("timeout_ms", f"{value[:40]!r} is no whole number from 1 to {TIMEOUT_MS_MAX}")
    return int(value)


def _wrong(parameter: str, message: str, status: int = 422) -> Exception:
    return refusal(status, f"{parameter}: {message}", [(("query", parameter), message)])
