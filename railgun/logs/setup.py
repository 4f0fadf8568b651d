"""Sets up the logs of a process: one handler on stderr for everything, libraries' records in the same form.

A record is one line: text for people, or a JSON object for machines.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

FIELDS = "fields"
"""The attribute of a record that carries its figures: `log.info("serving", extra=fields(url=url))`."""

# uvicorn gives its general logger this name, though it logs more than errors.
_RENAMED = {"uvicorn.error": "uvicorn"}
_LEVELS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "ERROR": "error", "CRITICAL": "critical"}


def fields(**values: Any) -> dict[str, Any]:
    """Return the `extra=` of a log call, for figures and names of a record. It must not hold contents of events."""
    return {FIELDS: values}


# Characters that a terminal could take for commands. Texts of clients and brokers are logged too.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def _escaped(text: str) -> str:
    return _CONTROLS.sub(lambda found: "\\n" if found[0] == "\n" else f"\\x{ord(found[0]):02x}", text)


class TextFormat(logging.Formatter):
    """Formats a record for people, in UTC: `12:00:00.250 info    railgun.serve: serving url=http://127.0.0.1:8080`."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        message = [
            record.getMessage(),
            *(f"{name}={_shown(value)}" for name, value in _fields(record).items()),
        ]
        where = f"{time:%H:%M:%S}.{int(record.msecs):03} {_level(record):<7} {_name(record)}: "
        return where + _escaped(" ".join(message)) + _trace(record)


class JsonFormat(logging.Formatter):
    """Formats a record as `{"time": …, "level": …, "logger": …, "message": …}`, with its fields and `error` in it."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        body: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": _level(record),
            "logger": _name(record),
            "message": record.getMessage(),
        }
        body |= {name: value for name, value in _fields(record).items() if name not in body}
        error = _trace(record)
        if error:
            body["error"] = error.strip()
        return _CONTROLS.sub(
            lambda found: f"\\u{ord(found[0]):04x}", json.dumps(body, ensure_ascii=False, default=str)
        )


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    found = getattr(record, FIELDS, {})
    return found if isinstance(found, dict) else {}


def _level(record: logging.LogRecord) -> str:
    return _LEVELS.get(record.levelname, record.levelname.lower())


def _name(record: logging.LogRecord) -> str:
    return _RENAMED.get(record.name, record.name)


def _shown(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(c in text for c in ' "=\n') else text


def _trace(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()


# These loggers say too much at `info`: a line for each request, or what Railgun's own lines say better.
_TALKATIVE = ("httpcore", "httpx", "asyncio", "uvicorn.access", "uvicorn.error")


@contextmanager
def logging_as(level: str, form: str, stream: TextIO | None = None) -> Iterator[None]:
    """Let all loggers write to `stream` (by default stderr) until the block is left.

    level: "debug", "info", "warning" or "error".
    form: "text", "json", or "auto" for text on a terminal and JSON lines elsewhere.
    """
    stream = sys.stderr if stream is None else stream
    as_text = form == "text" or (form == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormat() if as_text else JsonFormat())
    root = logging.getLogger()
    before = root.handlers[:], root.level, {name: logging.getLogger(name).level for name in _TALKATIVE}
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))
    try:
        yield
    finally:
        handler.flush()
        root.handlers[:], root_level, levels = before
        root.setLevel(root_level)
        for name, own in levels.items():
            logging.getLogger(name).setLevel(own)
