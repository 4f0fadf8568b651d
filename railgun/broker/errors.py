"""The errors of the local broker. Each names its place and what the operator can do."""

from railgun.wording import counted


class BrokerError(Exception):
    """The local broker could not be fetched, started or stopped.

    place: a folder, file, address or program.
    reason: what happened.
    remedy: what the operator can do.
    """

    def __init__(self, place: str, reason: str, remedy: str) -> None:
        self.place = place
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{place}: {reason}; {remedy}")


class JavaError(BrokerError):
    """Java is missing or too old."""


class FetchError(BrokerError):
    """Kafka's artifacts could not be fetched, or are not the pinned ones."""


class PortInUseError(BrokerError):
    """Another program listens on the port."""

    def __init__(self, address: str) -> None:
        super().__init__(
            address, "another program listens there", "stop it, or name another port with --port"
        )


class AlreadyRunningError(BrokerError):
    """The broker of the data folder is running already."""

    def __init__(self, folder: str, address: str, pid: int) -> None:
        super().__init__(
            folder,
            f"its broker is running already at {address} (process {pid})",
            "use it, stop it first, or name another folder with --data",
        )


class NotRunningError(BrokerError):
    """The broker of the data folder is not running."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, "its broker is not running", "start it with `railgun broker start`")


class TopicError(BrokerError):
    """A topic could not be made."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, f"the topic could not be made ({reason})", "name another one")


class OtherPartitionsError(BrokerError):
    """A topic is there already, and has another number of partitions than was asked for."""

    def __init__(self, name: str, partitions: int) -> None:
        has = counted(partitions, "partition")
        super().__init__(
            name,
            f"the topic is there already, with {has}",
            f"use it as it is (--partitions {partitions}), or name another one",
        )


class StartError(BrokerError):
    """The broker ended while it was starting, or did not answer in time."""


class StopError(BrokerError):
    """The broker could not be ended."""
