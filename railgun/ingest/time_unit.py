"""Warns if the times of a stream's events seem to be of another unit than its definition says.

Engines and front-ends call it.
"""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import StreamDefinition
from railgun.wording import unit_doubt

_log = logging.getLogger("railgun.events")


class TimeUnit:
    """Looks at the times of a stream's events, and warns once. Not to be shared between threads."""

    def __init__(self, stream: StreamDefinition) -> None:
        self._stream, self._has_warned = stream.name, stream.time is None
        self._unit = next((each.unit for each in stream.fields if each.name == stream.time), "") or "ms"

    def look(self, times: Sequence[int] | NDArray[np.int64]) -> None:
        """Look at the times of events that came together, in ms. The first stands for all: who errs, errs always."""
        if self._has_warned or not len(times):
            return
        doubt = unit_doubt(int(times[0]), self._unit)
        if doubt is not None:
            self._has_warned = True
            _log.warning("stream %s: %s", self._stream, doubt)
