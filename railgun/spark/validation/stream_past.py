"""A stream's history in validation: what its logs say about it, what its backfill read, and what was installed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import column_name
from railgun.history.manifest import HistoryManifest, read_manifest
from railgun.history.task_folder import current_folder
from railgun.spark.errors import PlaceError
from railgun.spark.sessions import kept
from railgun.spark.validation.admission import ACCEPTED_MS, DUPLICATE, TASK
from railgun.spark.validation.history_events import HistoryInput
from railgun.spark.validation.lifetimes import ControlHistory
from railgun.spark.validation.report import Example, MetricCheck, ReadHistory
from railgun.spark.validation.run_source import EVENT_MS
from railgun.spark.validation.worlds import Controls, Cutover, cutovers, is_base, known_setting, told_behind
from railgun.task.errors import TaskError


@dataclass(frozen=True, slots=True)
class StreamPast:
    """The history of a stream.

    read: how much was read.
    found: by partitioner, the cutovers of its tasks.  controls_seen: by partitioner, the control records of the second
    world.
    events: of `HistoryInput.events`, those before the cut.
    manifests: those of installed tasks whose folders can be read.
    """

    read: ReadHistory
    found: Mapping[str, Mapping[int, Cutover]]
    controls_seen: Mapping[str, ControlHistory]
    events: DataFrame
    manifests: Mapping[tuple[str, int], HistoryManifest]

    def check_installed(self, partitioner: str, behind: DataFrame, tasks: int) -> MetricCheck | None:
        """Check that as many events were installed as were read; None if that cannot be known.

        behind: admitted events, with those of the history.
        """
        counted = behind.where(is_base()).groupBy(TASK)
        figures = [
            F.count("*"),
            F.count(F.when(F.col(DUPLICATE), True)),
            F.min(ACCEPTED_MS),
            F.max(ACCEPTED_MS),
        ]
        rows = {row[0] - tasks: tuple(row)[1:] for row in counted.agg(*figures).collect()}
        compared, wrong = 0, []
        for task, cutover in self.found[partitioner].items():
            manifest = self.manifests.get((partitioner, task))
            if manifest is None or cutover.deepens:
                # A deepening is built of the events that the task still had, which cannot be read any more.
                continue
            compared += 1
            installed = manifest.events, manifest.duplicates, manifest.first_ms, manifest.last_ms
            expected = rows.get(task, (0, 0, None, None))
            if installed != expected:
                place = f"{column_name(partitioner)}, partition {task}, its manifest"
                wrong.append(Example(task, self.read.history, _figures(expected), _figures(installed), place))
        name = f"installed_{column_name(partitioner)}"
        return MetricCheck(name, compared, len(wrong), examples=tuple(wrong)) if compared else None


@contextmanager
def stream_past(
    spark: SparkSession,
    named: HistoryInput | None,
    stream: StreamDefinition,
    here: Mapping[str, tuple[ControlHistory, Controls]],
    data: str | None,
) -> Iterator[StreamPast | None]:
    """Yield the history that a stream's logs name; None if they name none.

    named: the input of its backfill.  here: by partitioner, its control records.  data: the data folder of an embedded
    engine.
    Raises PlaceError, HistoryError, ColumnError.
    """
    pasts = [
        past for controls_seen, _ in here.values() for each in controls_seen.pasts.values() for past in each
    ]
    check_named(stream.name, pasts[-1].history if pasts else None, named)
    if not pasts or named is None:
        yield None
        return
    manifests = {} if data is None else _manifests(Path(data), stream, {each.history for each in pasts})
    found = {}
    behind = {}
    for partitioner, (controls_seen, controls) in here.items():
        positions = {
            task: manifest.position for (name, task), manifest in manifests.items() if name == partitioner
        }
        found[partitioner] = cutovers(controls_seen, controls, positions)
        behind[partitioner] = told_behind(
            controls, partitioner, stream.partitions_of(partitioner), found[partitioner]
        )
    if any(len(each) < stream.partitions_of(name) for name, each in found.items()):
        raise PlaceError(
            f"stream {stream.name}: the record of its history {pasts[-1].history} is not in all of its logs yet; run "
            "this again"
        )
    one = next(iter(found))
    setting = known_setting(behind[one], found[one], stream.partitions_of(one))
    with kept(named.events(spark, setting.stream, setting.version)) as rows:
        refused, cut_ms = named.check(rows), pasts[-1].cut_ms
        before = rows.where(f"{EVENT_MS} < {cut_ms}L")
        read = ReadHistory(
            pasts[-1].history, named.source.places, cut_ms, rows.count(), before.count(), refused
        )
        yield StreamPast(read, found, behind, before, manifests)


def check_named(stream: str, told_of: str | None, named: HistoryInput | None) -> None:
    """Raise PlaceError if history is named and there is none, or the other way round. told_of: the id in the log."""
    if told_of is not None and named is None:
        raise PlaceError(
            f"stream {stream} has history (backfill {told_of}), which is not in its log: name what the backfill read, "
            "--history with the same --column, --format and --option"
        )
    if told_of is None and named is not None:
        raise PlaceError(f"stream {stream} has no history: leave out --history")


def _manifests(
    data: Path, stream: StreamDefinition, histories: set[str]
) -> dict[tuple[str, int], HistoryManifest]:
    """Return the manifests of the tasks whose folders have one of these histories."""
    found = {}
    for partitioner, partition in stream.tasks:
        place = data / "streams" / stream.name / column_name(partitioner) / str(partition)
        try:
            manifest = read_manifest(current_folder(place))
        except (TaskError, OSError):
            continue
        if manifest.history in histories:
            found[partitioner, partition] = manifest
    return found


def _figures(figures: tuple[int | None, ...]) -> str:
    events, duplicates, first_ms, last_ms = figures
    return f"{events} events, {duplicates} of them duplicates, from {first_ms} to {last_ms} ms"
