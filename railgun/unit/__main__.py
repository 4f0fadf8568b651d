"""`python -m railgun.unit`: runs one unit, as the supervisor of its node starts it."""

import argparse
import logging
import sys
import threading
from collections.abc import Sequence

from railgun.arrow_alone import without_pandas
from railgun.config.loading import settings_of
from railgun.logs.setup import logging_as
from railgun.messaging.errors import TransportError
from railgun.node.child_arguments import child_parser
from railgun.node.ending import DEADLINES, Deadlines, Ending
from railgun.node.parent import Parent
from railgun.node.signals import stop_when_asked
from railgun.registry.errors import RegistryError
from railgun.state.errors import StateError
from railgun.unit.heartbeat import failed
from railgun.unit.process import UnitPlace, run_unit
from railgun.wording import error_text
from reservoir.errors import ReservoirError

_FAILED = (TransportError, RegistryError, StateError, ReservoirError, OSError, ValueError)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = child_parser("railgun.unit", __doc__)
    parser.add_argument("--index", type=int, required=True)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None, deadlines: Deadlines = DEADLINES) -> int:
    """Run a unit until it is asked to stop. Returns 0; or 1 after an error, when the supervisor starts the unit
    again.
    """
    arguments = _arguments(words)
    settings = settings_of(arguments.config, arguments.broker)
    stopped = threading.Event()
    stop_when_asked(stopped)
    without_pandas()
    parent = Parent(stopped)
    place = UnitPlace(arguments.node_folder, arguments.index, arguments.units)
    name = f"unit {place.index}"
    with logging_as(settings.logging.level, settings.logging.format), Ending(stopped, name, deadlines.over_s):
        try:
            run_unit(settings, place, stopped, parent, deadlines)
        except _FAILED as error:
            logging.getLogger("railgun.unit").error("%s ends: %s", name, error_text(error))
            parent.write(failed(error_text(error)))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
