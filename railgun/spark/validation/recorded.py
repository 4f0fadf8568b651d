"""The places of a service's logs and recorded replies. They can be checked before any work starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import column_name
from railgun.registry.topics import Topics
from railgun.spark.errors import OptionError, ReplyFileError
from railgun.spark.tables.opening import registered
from railgun.spark.tables.options import read_options
from railgun.spark.validation.history_events import HistoryInput
from railgun.spark.validation.reply_source import ReplyPlace, ResultColumn
from railgun.spark.validation.stream_past import check_named
from railgun.spark.validation.task_log_source import RECORD, TaskLogSource


@dataclass(frozen=True, slots=True)
class Recorded:
    """The places of a service's logs and replies.

    log: options of the data source, which name a folder or a broker.
    stream: its name; None if there is only one.
    files: files with one reply on each line; none for the stream's output topic.
    history: the input of the stream's backfill, if it had one.
    """

    log: Mapping[str, str]
    stream: str | None = None
    files: tuple[str, ...] = ()
    history: HistoryInput | None = None

    def registered(self) -> StreamEntry:
        """Return the stream. Raises OptionError, PlaceError."""
        named = {} if self.stream is None else {"stream": self.stream}
        return registered(read_options({**self.log, **named}))

    def options(self, stream: str, partitioner: str) -> dict[str, str]:
        """Return the options of the data source for the logs of a partitioner."""
        made = {**self.log, "stream": stream, "partitioner": column_name(partitioner)}
        return made if self.history is None else {**made, "columns": RECORD}

    def replies(self, stream: StreamDefinition, columns: Sequence[ResultColumn] = ()) -> ReplyPlace:
        """Return the place of a stream's replies. Raises OptionError, ReplyFileError if there can be none."""
        options = read_options(self.log)
        if options.broker is None and not self.files:
            raise OptionError(
                "replies of an embedded engine are in no topic: name the files that they were written to, one JSON "
                "reply on each line, as railgun score prints them"
            )
        for path in self.files:
            if not Path(path).is_file():
                raise ReplyFileError(
                    f"{path}: there is no such file; name files of one JSON reply on each line"
                )
        broker = None if self.files else options.broker
        topic = Topics(options.topic_prefix).output_of(stream)
        return ReplyPlace(self.files, broker, topic, options.kafka, tuple(columns))


def check_recorded(recorded: Recorded) -> StreamEntry:
    """Check before any work starts that all logs and replies can be read. Returns the stream.

    Raises OptionError, PlaceError, ReplyFileError.
    """
    entry = recorded.registered()
    stream = entry.stream
    replies = recorded.replies(stream)
    if replies.broker is not None:
        replies.open().close()
    for partitioner in stream.partitioners:
        TaskLogSource(recorded.options(stream.name, partitioner)).log_reader().partitions()
    check_named(stream.name, None if entry.history is None else entry.history.history, recorded.history)
    return entry
