"""Lets a caller that waits for a change of the catalogue take the change back before it has begun.

Front-ends use it.
"""

import threading

from railgun.registry.errors import ChangeWithdrawnError


class CancellationToken:
    """Cancels one change if it has not begun. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_begun = self._is_withdrawn = False

    @property
    def has_begun(self) -> bool:
        """Whether part of the change was handed to the broker. From then on the change may take effect."""
        return self._has_begun

    def check(self) -> None:
        """Raise ChangeWithdrawnError if the change was taken back."""
        if self._is_withdrawn:
            raise ChangeWithdrawnError

    def begin(self) -> None:
        """Note that the change begins: it cannot be taken back any more.

        Raises ChangeWithdrawnError if it was taken back.
        """
        with self._lock:
            self.check()
            self._has_begun = True

    def withdraw(self) -> bool:
        """Take the change back. Returns True if it will never take effect, False if it has begun."""
        with self._lock:
            self._is_withdrawn = not self._has_begun
            return self._is_withdrawn
