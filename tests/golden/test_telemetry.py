"""Names of metrics and labels, and the values of labels that are not names of streams and tasks."""

from frontend.kafka.telemetry import OUTCOMES
from frontend.topics.telemetry import INPUT_STAGES
from railgun.ingest.result_table import LATE_WORDS
from railgun.telemetry.collector import none_of, put_disk
from railgun.telemetry.families import FAMILIES, IN_UNIT, ON_NODE, SERVED, Family
from railgun.telemetry.reading import DiskReading
from railgun.telemetry.recording import BATCH_BOUNDS, REASONS, SECONDS_BOUNDS, STAGES
from railgun.unit.figures import UNIT_STAGES
from tests.golden.promises import held


def names(families: tuple[Family, ...]) -> list[str]:
    return [each.name for each in families]


def test_families_and_label_values() -> None:
    disk = none_of(FAMILIES)
    put_disk(disk, DiskReading(1, 2, 3, 4))
    found = {
        "families": {each.name: [each.kind, *each.labels] for each in FAMILIES},
        "of a server": names(SERVED),
        "of a unit": names(IN_UNIT),
        "of a node": names(ON_NODE),
        "stages": STAGES,
        "stages of inputs": INPUT_STAGES,
        "stages of units": UNIT_STAGES,
        "reasons": REASONS,
        "outcomes of replies": OUTCOMES,
        "outcomes of late events": [each for each in LATE_WORDS if each],
        "disk": {name: samples for name, samples in disk.items() if samples},
        "bounds in seconds": SECONDS_BOUNDS,
        "bounds of batches": BATCH_BOUNDS,
    }
    held("telemetry.json", found)
