"""The errors of registering, and of the catalogue's log. Each is one line with the place and the remedy."""

from collections.abc import Iterable, Sequence

from railgun.catalog.catalog import Difference
from railgun.messaging.errors import TransportIOError


class EngineError(Exception):
    """An engine, or a cluster in its place, could not do what it was asked to. The message is one line for people."""


class DefinitionsError(EngineError):
    """The definitions cannot be registered.

    The message names the place in the definition or query, and may suggest a mend.
    """


class DifferentDefinitionsError(DefinitionsError):
    """Definitions differ from what is registered, and `apply` does not change that. Nothing was applied."""

    def __init__(self, differences: Sequence[Difference]) -> None:
        self.differences = tuple(differences)
        shown = "; ".join(map(str, self.differences))
        super().__init__(f"nothing was applied: {shown}; change the definition, or drop what is registered")


class UnknownNameError(EngineError):
    """There is no stream or metric of this name."""


class UnknownStreamError(UnknownNameError):
    """There is no stream of this name. known: the names of all streams."""

    def __init__(self, message: str, stream: str, known: Iterable[str]) -> None:
        self.stream, self.known = stream, tuple(known)
        super().__init__(message)


class TopicGoneError(TransportIOError):
    """A topic that tells tasks of changes was deleted after a change began. The change is finished once it is there."""

    def __init__(self, stream: str, gone: str) -> None:
        super().__init__(stream, gone, "Changes of the catalogue wait until then")


class RegistryError(Exception):
    """The log of the catalogue cannot be used as it is."""


class CatalogDamagedError(RegistryError):
    """An entry of the catalogue cannot be read."""

    def __init__(self, place: str, offset: int, reason: str) -> None:
        self.place, self.offset = place, offset
        super().__init__(
            f"{place}: the catalogue's entry at offset {offset} cannot be read ({reason}); restore it from a copy"
        )


class CatalogVersionError(RegistryError):
    """The catalogue was written by a newer version of the program."""

    def __init__(self, place: str, offset: int, version: int, newest: int) -> None:
        self.place, self.offset = place, offset
        super().__init__(
            f"{place}: the catalogue's entry at offset {offset} has version {version}, this program reads up to "
            f"{newest}; run the version that wrote it, or a newer one"
        )


class ChangeWithdrawnError(RegistryError):
    """The change was taken back before it began. Nothing changed."""

    def __init__(self) -> None:
        super().__init__("nothing was changed: nobody waits for it any more")


class RegistryBusyError(RegistryError):
    """Other processes kept changing the catalogue at the same time. is_made: whether this change was made."""

    def __init__(self, place: str, attempts: int, is_made: bool) -> None:
        self.is_made = is_made
        what = (
            "it is recorded, and will be finished by whoever changes the catalogue next"
            if is_made
            else "nothing changed"
        )
        super().__init__(
            f"{place}: {attempts} attempts to change the catalogue were cut by others ({what}); try again"
        )
