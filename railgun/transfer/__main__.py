"""`python -m railgun.transfer`: serves and fetches snapshots, as the supervisor of its node starts it."""

import argparse
import logging
import os
import sys
import threading
from collections.abc import Sequence

import msgspec

from railgun.config.loading import settings_of
from railgun.logs.setup import logging_as
from railgun.messaging.errors import TransportFailedError
from railgun.node.child_arguments import child_parser
from railgun.node.ending import Ending
from railgun.node.parent import Parent
from railgun.node.signals import stop_when_asked
from railgun.transfer.process import TransferProcess
from railgun.wording import error_text

# This process loses nothing if it is ended.
_OVER_S = 5.0
_encode = msgspec.json.Encoder().encode


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = child_parser("railgun.transfer", __doc__)
    parser.add_argument("--release", required=True)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run until asked to stop. Returns 0; or 1 after an error, when the supervisor starts the process again."""
    arguments = _arguments(words)
    settings = settings_of(arguments.config, arguments.broker)
    stopped = threading.Event()
    stop_when_asked(stopped)

    def tell(figures: dict[str, int]) -> None:
        parent.write(_encode({"version": 1, "ready": True, "transfer": figures}) + b"\n")

    process = TransferProcess(
        settings, arguments.node_folder, arguments.release, lambda to, message: parent.send(to, message), tell
    )
    parent = Parent(stopped, take=process.take)
    ending = Ending(stopped, "the transfer process", _OVER_S, lambda code: os._exit(0))
    with logging_as(settings.logging.level, settings.logging.format), ending:
        try:
            process.run(stopped)
        except (TransportFailedError, OSError) as error:
            logging.getLogger("railgun.transfer").error(
                "no snapshots are served or fetched: %s", error_text(error)
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
