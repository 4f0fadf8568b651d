"""The errors of transports. Each names the place, what happened, and what the operator can do."""


class TransportError(Exception):
    """A log could not be read or written.

    place: the folder, broker, topic or partition.  reason: what happened.  remedy: what the operator can do.
    """

    def __init__(self, place: str, reason: str, remedy: str) -> None:
        self.place = place
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{place}: {reason}. {remedy}")


class UnreadableRecordError(ValueError):
    """A record cannot be read. The text says why."""


class TopicMissingError(TransportError):
    """There is no such topic or partition."""

    def __init__(
        self,
        place: str,
        remedy: str = "Check its name. A task whose topic was deleted begins anew by `railgun cluster accept-cut`",
    ) -> None:
        super().__init__(place, "there is no such topic or partition", remedy)


class TopicExistsError(TransportError):
    """The topic exists with another number of partitions."""

    def __init__(self, topic: str, existing: int, required: int) -> None:
        super().__init__(
            topic,
            f"it has {existing} partitions, not {required}",
            "The number of partitions is fixed at creation",
        )


class OffsetOutOfRangeError(TransportError):
    """The offset was trimmed, or does not exist yet. Offsets from `start` up to `end` can be read."""

    def __init__(self, place: str, offset: int, start: int, end: int) -> None:
        self.offset = offset
        self.start = start
        self.end = end
        super().__init__(
            place,
            f"offset {offset} is outside {start}..{end}",
            "Begin at a checkpoint that this log still covers, or rebuild from another copy",
        )


class RecordTooLargeError(TransportError):
    """A record is larger than the transport's limit. Nothing was appended."""

    def __init__(self, place: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            place, f"a record has {size_bytes} bytes, at most {limit_bytes} are taken", "Send smaller events"
        )


class TransportFullError(TransportError):
    """Back-pressure: too much waits to be written. Nothing was appended; the caller may try again later."""

    def __init__(self, place: str, pending_bytes: int) -> None:
        super().__init__(
            place, f"{pending_bytes} bytes wait to be written", "Send more slowly; the log cannot follow"
        )


class TransportLockedError(TransportError):
    """Another process has the folder open."""

    def __init__(self, place: str, owner: str) -> None:
        self.owner = owner
        super().__init__(
            place,
            f"the folder is in use by process {owner}",
            "Stop that process, or give this one a folder of its own",
        )


class TransportIOError(TransportError):
    """A write, sync or read failed. After a failed write the transport refuses others until it is opened again."""


class TopicSettingsError(TransportError):
    """The topic exists with other settings than its records need."""

    def __init__(self, topic: str, setting: str, existing: str, required: str) -> None:
        super().__init__(
            topic,
            f"{setting} is {existing}, and it has to be {required}",
            f"Set it (kafka-configs.sh --alter --topic {topic} --add-config {setting}={required}), "
            "or delete the topic if its records are not needed",
        )


class TransportUnavailableError(TransportIOError):
    """The broker did not answer in time. The request may have taken effect; it may be tried again."""


class TransportRefusedError(TransportIOError):
    """The broker refused the request. A setting, a right or a limit has to be changed before it is tried again."""


class TransportFailedError(TransportIOError):
    """The producer's state is lost. The transport takes nothing more until it is opened again."""


class TransportCorruptionError(TransportError):
    """The stored bytes are not those that were written."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason, "Restore it from a copy: records may be missing from here on")


class TransportShortenedError(TransportCorruptionError):
    """The end of the log lacks acknowledged records: its newest file is damaged, or was removed."""

    def __init__(self, place: str, missing: int, mark: str) -> None:
        self.missing = missing
        super().__init__(
            place,
            f"its last {missing} commits are gone; {mark} says that they were there",
        )


class TransportVersionError(TransportError):
    """A newer version of the program has written the data."""

    def __init__(self, place: str, version: int) -> None:
        super().__init__(
            place, f"its format is version {version}", "Run the version that wrote it, or a newer one"
        )


class TransportClosedError(TransportError):
    """The transport was used after `close`."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "it is closed", "Open it again")


class TransportReadOnlyError(TransportError):
    """The transport was opened for reading only."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "it is open for reading alone", "Open the log itself to write to it")


class WriterFencedError(TransportError):
    """Another writer has shut this one out, which cannot append any more.

    The caller makes a new writer, and reads the records that were appended meanwhile.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "another process took over writing", "Try again")
