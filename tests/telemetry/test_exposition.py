"""What `/metrics` says: every family, from what was noted and read, without waiting for anyone."""

from dataclasses import fields, replace

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from frontend.http.monitoring import Exposition
from railgun.telemetry.collector import RailgunCollector
from railgun.telemetry.families import SERVED, FamilyKind
from railgun.telemetry.reading import DiskReading, EngineReading, TaskReading
from railgun.telemetry.recording import REASONS, STAGES, Recording

# Every number another one, so that none can stand in another's place.
TASK = TaskReading(
    *("payments", "card", 3, *range(100, 100 + len(fields(TaskReading)) - 4)),  # type: ignore[arg-type]
    filled={"n": 0.25, "total": 0.5},
)


class Scene:
    """An exposition over figures of the test's own."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.reading: EngineReading | None = None
        self.looked = 0
        self.now_s = 50.0
        self.exposition = Exposition(
            RailgunCollector(
                lambda: self.recording,
                lambda: self.reading,
                self.look,
                lambda: (9, 99),
                lambda: True,
                "1.2",
                lambda: self.now_s,
            )
        )

    def look(self) -> DiskReading:
        self.looked += 1
        return DiskReading(1, 2, 3, 4)

    def samples(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        body, _ = self.exposition.text()
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in parse(body.decode())
            for sample in family.samples
        }


def test_every_family_is_there_from_the_start() -> None:
    body, content_type = Scene().exposition.text()
    assert content_type.startswith("text/plain")
    found = {(family.name, family.type, family.documentation) for family in parse(body.decode())}
    for family in SERVED:
        name = family.name.removesuffix("_total") if family.kind is FamilyKind.COUNTER else family.name
        assert (name, str(family.kind), family.says) in found


def test_each_figure_of_a_task_stands_at_its_name() -> None:
    scene = Scene()
    scene.reading = EngineReading(48.5, (TASK, replace(TASK, partition=4, rows=7)))
    found = scene.samples()
    labels = (("partition", "3"), ("partitioner", "card"), ("stream", "payments"))
    for name, member in (
        ("railgun_task_position", "position"),
        ("railgun_task_checkpoint_position", "checkpoint"),
        ("railgun_task_clock_seconds", "clock_s"),
        ("railgun_unreadable_records_total", "unreadable_records"),
        ("railgun_checkpoints_total", "checkpoints"),
        ("railgun_checkpoint_last_seconds", "checkpoint_s"),
        ("railgun_state_written_bytes_total", "state_written_bytes"),
        ("railgun_rows", "rows"),
        ("railgun_rows_bytes", "rows_bytes"),
        ("railgun_rows_loaded_total", "rows_loaded"),
        ("railgun_rows_evicted_total", "rows_evicted"),
        ("railgun_pages_bytes", "pages_bytes"),
        ("railgun_page_operations_total", "page_operations"),
        ("railgun_page_faults_total", "page_faults"),
        ("railgun_chunks", "chunks"),
        ("railgun_chunks_pending", "chunks_pending"),
        ("railgun_chunk_cache_bytes", "chunk_cache_bytes"),
        ("railgun_chunk_hits_total", "chunk_hits"),
        ("railgun_chunk_misses_total", "chunk_misses"),
        ("railgun_chunks_wasted_total", "chunks_wasted"),
        ("railgun_open_rows", "open_rows"),
        ("railgun_open_bytes", "open_bytes"),
        ("railgun_metrics", "metrics"),
        ("railgun_metrics_warming", "metrics_warming"),
        ("railgun_fill_ratio", "fill_ratio"),
    ):
        assert found.pop((name, labels)) == getattr(TASK, member), name
    assert found["railgun_rows", (("partition", "4"), *labels[1:])] == 7
    assert found["railgun_reading_age_seconds", ()] == 1.5
    assert not [name for name, where in found if where == labels]


def test_traffic() -> None:
    scene = Scene()
    record = scene.recording.stream("payments")
    record.events += 5
    record.refused["invalid"] += 2
    record.late["card", "rewritten"] += 3
    record.duplicates["card"] += 4
    record.batches.add(5)
    for stage in STAGES:
        record.stages[stage].add(0.02)
    found = scene.samples()
    stream = ("stream", "payments")
    card = ("partitioner", "card")
    assert found["railgun_events_total", (stream,)] == 5
    assert found["railgun_events_refused_total", (("reason", "invalid"), stream)] == 2
    assert found["railgun_events_late_total", (("outcome", "rewritten"), card, stream)] == 3
    assert found["railgun_events_duplicate_total", (card, stream)] == 4
    assert found["railgun_batch_events_sum", (stream,)] == 5
    for stage in STAGES:
        buckets = [
            found["railgun_stage_seconds_bucket", (("le", le), ("stage", stage), stream)]
            for le in ("0.01", "0.025")
        ]
        assert buckets == [0, 1]
    assert (found["railgun_in_flight_events", ()], found["railgun_in_flight_bytes", ()]) == (9, 99)
    scene.recording.forget("payments")
    assert ("railgun_events_total", (stream,)) not in scene.samples()


def test_the_disk_is_looked_at_now_and_then() -> None:
    scene = Scene()
    assert scene.looked == 0
    for now_s, looked in ((50.0, 1), (59.9, 1), (60.0, 2)):
        scene.now_s = now_s
        assert scene.samples()["railgun_disk_bytes", (("kind", "state"),)] == 2
        assert scene.looked == looked


def test_openmetrics_where_it_is_asked_for() -> None:
    scene = Scene()
    scene.recording.stream("payments").refused[REASONS[0]] += 1
    scene.reading = EngineReading(1.0, (TASK,))
    body, content_type = scene.exposition.text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert len(list(parse_openmetrics(body.decode()))) >= len(SERVED)


def test_registries_are_apart() -> None:
    one, other = Scene(), Scene()
    one.recording.stream("only_here")
    assert b"only_here" not in other.exposition.text()[0]
