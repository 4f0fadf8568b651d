"""Setting up logs for a process: one handler on stderr for everything, libraries' records in the same form."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from railgun.config.settings import LoggingSettings
from railgun.logs.formats import JsonFormat, TextFormat

# What they say at `info` is of use to their makers only: a line per request, or what our own lines say better.
_TALKATIVE = ("httpcore", "httpx", "asyncio", "uvicorn.access", "uvicorn.error")


@contextmanager
def logging_as(settings: LoggingSettings, stream: TextIO | None = None) -> Iterator[None]:
    """All loggers write to `stream` (stderr) in the form that the settings say, until the block is left."""
    stream = sys.stderr if stream is None else stream
    as_text = settings.format == "text" or (settings.format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormat() if as_text else JsonFormat())
    root = logging.getLogger()
    before = root.handlers[:], root.level, {name: logging.getLogger(name).level for name in _TALKATIVE}
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))
    try:
        yield
    finally:
        handler.flush()
        root.handlers[:], level, levels = before
        root.setLevel(level)
        for name, own in levels.items():
            logging.getLogger(name).setLevel(own)
