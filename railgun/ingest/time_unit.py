"""Warns where the times of a stream's events look like seconds since 1970: they are taken for milliseconds."""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from railgun.wording import seconds_doubt

_log = logging.getLogger("railgun.events")


class TimeUnit:
    """Looks at the times of a stream's events, and warns once. Not to be shared between threads."""

    def __init__(self, stream: str) -> None:
        self._stream, self._has_warned = stream, False

    def look(self, times: Sequence[int] | NDArray[np.int64]) -> None:
        """Look at the times of events that came together, in ms. The first stands for all: who errs, errs always."""
        if self._has_warned or not len(times):
            return
        doubt = seconds_doubt(int(times[0]))
        if doubt is not None:
            self._has_warned = True
            _log.warning("stream %s: %s", self._stream, doubt)
