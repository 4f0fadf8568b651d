"""Keeps the functions that decode records, by what they were made of."""

from collections.abc import Callable, Hashable
from typing import Any

from frontend.formats.errors import ValueUnreadableError

Read = Callable[[bytes], dict[str, Any]]

_KNOWN_MAX = 1_000


class Readers:
    """What has been made. Not to be shared between threads."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Read | ValueUnreadableError] = {}

    def get(self, key: Hashable, make: Callable[[], Read]) -> Read:
        """Return the function that decodes values. What cannot be made once is not tried again.

        Raises ValueUnreadableError.
        """
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            try:
                found = make()
            except ValueUnreadableError as error:
                found = error
            self._known[key] = found
        if isinstance(found, ValueUnreadableError):
            raise ValueUnreadableError(str(found))
        return found
