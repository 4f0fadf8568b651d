"""A stream of a real cluster, as the oracle's steps see it. Events in a row are all under way at once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from railgun.catalog.changes import AddMetric
from railgun.catalog.computed_reading import is_computed
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.records import READS, FrontEndRecord, encode_statement
from railgun.cluster.report_table import ReportedCopy, ReportTable
from railgun.cluster.reports import UnitReport
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition, TopicSettings
from railgun.registry import evolution
from railgun.registry.cluster_topics import make_topics
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.wire.records import Records
from tests.strategies.case import STREAM
from tests.unit.front_end import FrontEnd
from tests.unit.local_units import awaited, quick_settings


def longest_delay_s(reports: Iterable[UnitReport]) -> float:
    """By how many seconds a report was overdue, at the most: a unit announces when its next one comes."""
    last: dict[tuple[CopyName, int], UnitReport] = {}
    longest_ms = 0
    for report in reports:
        before = last.get((report.copy, report.generation))
        if before is not None:
            longest_ms = max(longest_ms, report.said_ms - before.said_ms - before.interval_ms)
        last[report.copy, report.generation] = report
    return longest_ms / 1000


class PositionReader:
    """What the topic of positions says, by task.

    runs: the newest generation of each unit.  reports: all that were read, in the order of the topic.
    """

    def __init__(self, transport: KafkaTransport, topic: str) -> None:
        self._transport, self._where = transport, TopicPartition(topic, 0)
        transport.create_topic(topic, 1, TopicSettings(is_compacted=True))
        self._offset = 0
        self._reports = ReportTable()
        self.newest: dict[tuple[str, str, int], ReportedCopy] = {}
        self.runs: dict[CopyName, int] = {}
        self.reports: list[UnitReport] = []

    def copies(self, task: TaskKey) -> Iterable[ReportedCopy]:
        """What was last heard of each copy of a task."""
        return self._reports.copies(task)

    def read(self) -> None:
        """Take what is new."""
        end = self._transport.end_offset(*self._where)
        while self._offset < end:
            fetched = self._transport.read(*self._where, self._offset, 10_000, 1 << 20)
            for value in fetched.written():
                report = self._reports.take(value)
                if report is None:
                    continue
                self.reports.append(report)
                self.runs[report.copy] = report.generation
                for status in report.copies:
                    heard = self._reports.newest(status.task)
                    if heard is not None:
                        self.newest[status.stream, status.partitioner, status.partition] = heard
            self._offset = fetched.next_offset


class ClusterPlayer:
    """Plays steps on the stream of a cluster. Events are only sent: `replies` has what became of them."""

    def __init__(self, broker: str, prefix: str, number: int = 1) -> None:
        self.transport = KafkaTransport(quick_settings(broker))
        self.registry = KafkaRegistry(quick_settings(broker), prefix)
        self.front_end = FrontEnd(self.transport, self.registry.topics, number)
        self.positions = PositionReader(self.transport, self.registry.topics.positions)
        self._unsent: list[Mapping[str, Any]] = []

    def apply(self, definitions: str) -> None:
        parsed = parse_definitions(definitions)
        if any(stream.computed for stream in parsed.streams.values()):
            self._introduce()
        self.registry.change(lambda catalog: evolution.missing(catalog, parsed))

    def score(self, event: Mapping[str, Any]) -> dict[str, Any]:
        self._unsent.append(event)
        return {}

    def flush(self) -> None:
        """Send the events that wait."""
        unsent, self._unsent = self._unsent, []
        for first in range(0, len(unsent), 500):
            entry = self.registry.snapshot().catalog.streams[STREAM]
            self.front_end.send(entry, unsent[first : first + 500])

    def replies(self) -> Sequence[dict[str, Any]]:
        """To all events so far, once they are all there."""
        self.flush()
        self.front_end.await_all()
        return self.front_end.replies()

    def add_metrics(self, sql: str, *, warm: bool = True) -> object:
        assert warm
        self.flush()
        made = self.registry.change(lambda catalog: evolution.new_metrics(catalog, STREAM, sql))
        adds = [each for each in made if isinstance(each, AddMetric)]
        self._await_warm({each.metric.home for each in adds}, {each.metric.name for each in adds})
        return None

    def warm(self, name: str) -> None:
        raise AssertionError("units write `warm` when it is due")

    def drop_metric(self, name: str) -> None:
        self._change(lambda catalog: [evolution.dropped_metric(catalog, STREAM, name)])

    def add_field(self, name: str, declared: Any) -> None:
        if is_computed(declared):
            self._introduce()
        self._change(lambda catalog: [evolution.added_field(catalog, STREAM, name, declared)])

    def place_field(self, name: str, declared: Any) -> None:
        self._change(lambda catalog: evolution.changed_stream(catalog, STREAM, {"fields": {name: declared}}))

    def drop_field(self, name: str) -> None:
        self._change(lambda catalog: [evolution.dropped_field(catalog, STREAM, name)])

    def set_lateness(self, duration: str) -> None:
        self._change(lambda catalog: [evolution.evolved(catalog, STREAM, {"lateness": duration})])

    def set_retention(self, duration: str) -> None:
        self._change(lambda catalog: [evolution.evolved(catalog, STREAM, {"retention": duration})])

    def set_clock(self, clock_ms: int) -> None:
        raise AssertionError("the tests' front-end has no clock")

    def close(self) -> None:
        self.registry.close()
        self.transport.close()

    def await_processed(self, wait_s: float = 120.0) -> None:
        """Return when every task says that it has processed its whole log."""
        topics = self.registry.topics
        ends = {
            (name, partitioner, partition): self.transport.end_offset(
                topics.tasks(name, partitioner), partition
            )
            for name, entry in self.registry.snapshot().catalog.streams.items()
            for partitioner, partition in entry.stream.tasks
        }

        def done() -> bool:
            self.positions.read()
            newest = self.positions.newest
            return all(key in newest and newest[key].status.position >= end for key, end in ends.items())

        awaited(done, wait_s)

    def _introduce(self) -> None:
        """Say what the front-end reads: computed fields are refused before."""
        make_topics(self.transport, self.registry.topics)
        said = FrontEndRecord(said_ms=1, number=self.front_end.number, name="test", release="", reads=READS)
        where = TopicPartition(self.registry.topics.nodes, 0)
        entry = Entry(where, Records.of([encode_statement(said)]), [said.key])
        self.transport.submit([entry]).result(60.0)

    def _change(self, request: Any) -> None:
        self.flush()
        self.registry.change(request)

    def _await_warm(self, homes: set[str], names: set[str]) -> None:
        self.await_processed()

        def done() -> bool:
            self.positions.read()
            return not any(
                names & set(heard.status.warming)
                for (stream, partitioner, _), heard in self.positions.newest.items()
                if stream == STREAM and partitioner in homes
            )

        awaited(done)
