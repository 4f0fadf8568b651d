"""Says which streams name input topics: this server has no broker, so it reads none of them."""

import logging

from railgun.catalog.model import StreamDefinition
from railgun.wording import listed

NO_BROKER = "this server has no broker"
_log = logging.getLogger("railgun.frontend")


def warn_of_unread_topics(stream: StreamDefinition) -> None:
    """Log a warning if a stream names input topics."""
    if stream.input.topics:
        _log.warning(
            "stream %s: its input topics (%s) are not read: %s",
            stream.name,
            listed(stream.input.topics),
            NO_BROKER,
        )
