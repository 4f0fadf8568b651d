"""Whether a change of the catalogue may still begin: whoever waits for it may take that back, until it has begun."""

import threading

from railgun.registry.errors import ChangeWithdrawnError


class CancellationToken:
    """To one change. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_begun = self._is_withdrawn = False

    @property
    def has_begun(self) -> bool:
        """Whether something of the change was handed to the broker: it may take effect from then on."""
        return self._has_begun

    def check(self) -> None:
        """Raises ChangeWithdrawnError where it was taken back."""
        if self._is_withdrawn:
            raise ChangeWithdrawnError

    def begin(self) -> None:
        """From here on it cannot be taken back. Raises ChangeWithdrawnError."""
        with self._lock:
            self.check()
            self._has_begun = True

    def withdraw(self) -> bool:
        """Take it back: True where the change will never take effect, False where it has begun."""
        with self._lock:
            self._is_withdrawn = not self._has_begun
            return self._is_withdrawn
