"""The time and the disk that one figure may take."""

import shutil
import tempfile
import time

FIGURE_S = 75 * 60.0
_SPARE_BYTES = 4 << 30


class BudgetError(Exception):
    """A part of a figure would take more time or disk than there is."""


class Budget:
    """The time of a figure or of a part of it, from now on."""

    def __init__(self, seconds: float = FIGURE_S) -> None:
        self._seconds, self._end_s = seconds, time.monotonic() + seconds

    def check_time(self, needed_s: float = 0.0) -> None:
        """Raise BudgetError if less time is left than a part needs."""
        left_s = self._end_s - time.monotonic()
        if left_s <= needed_s:
            raise BudgetError(
                f"{max(0.0, left_s):.0f} s of {self._seconds / 60:.0f} minutes are left:"
                f" {needed_s:.0f} s are needed"
            )


def check_disk(needed_bytes: float) -> None:
    """Raise BudgetError if the folder of temporary files would have no 4 GiB left."""
    folder = tempfile.gettempdir()
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes + _SPARE_BYTES:
        raise BudgetError(
            f"{folder} has {free_bytes / 1e9:.0f} GB free: {(needed_bytes + _SPARE_BYTES) / 1e9:.0f} GB are"
            " needed; TMPDIR names another folder"
        )
