"""The page says what there is: every metric with its kind, its labels and what it says, every stage, every reason."""

import re
import ssl
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from frontend.kafka.telemetry import ExchangeCollector, UnansweredCollector
from frontend.topics.telemetry import InputCollector
from railgun.access.refusal_collector import RefusalCollector
from railgun.access.refusals import STATUSES
from railgun.access.tls import OUTCOMES, Certificates, Tls
from railgun.access.tls_collector import TlsCollector
from railgun.telemetry.collector import RailgunCollector
from railgun.telemetry.families import ACCESS, ANSWERED, FAMILIES, FRONT_END, INPUT, SERVED, TLS
from railgun.telemetry.recording import REASONS, STAGES, Recording
from railgun.unit.figures import UNIT_STAGES

PAGE = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(railgun_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", re.MULTILINE)

NO_CERTIFICATES = Certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), None, {})


def test_the_page_lists_the_metrics() -> None:
    listed = [
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)), says)
        for name, kind, labels, says in ROW.findall(PAGE)
    ]
    assert listed == [(each.name, str(each.kind), each.labels, each.says) for each in FAMILIES]


def test_the_page_explains_stages_and_reasons() -> None:
    for words in (STAGES, REASONS, UNIT_STAGES, OUTCOMES, STATUSES):
        block = "".join(rf"\| `{word}` \|[^\n]*\n" for word in words)
        assert re.search(rf"\| --- \| --- \|\n{block}\n", PAGE), words


def test_what_wakes_people_is_there() -> None:
    names = {each.name for each in FAMILIES}
    named = set(re.findall(r"railgun_\w+", PAGE.partition("## Alerts and dashboards")[2]))
    assert "railgun_tasks_unanswered" in named
    assert named <= names


def test_names_and_labels_are_as_prometheus_wants_them() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"railgun_[a-z_]+", family.name)
        assert (family.kind == "counter") == family.name.endswith("_total")
        assert set(family.labels) <= {
            "stream", "topic", "field", "partitioner", "partition", "stage", "reason", "outcome", "kind", "version",
            "state", "status", "unit",
        }  # fmt: skip
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_what_a_front_end_on_kafka_says_can_stand_in_one_registry() -> None:
    registry = CollectorRegistry()
    served = RailgunCollector(Recording, lambda: None, lambda: None, lambda: (0, 0), lambda: True, "1.2")
    others = ExchangeCollector(lambda: None), UnansweredCollector(lambda: None), InputCollector(lambda: None)
    for collector in (served, *others, RefusalCollector(), TlsCollector(Tls(NO_CERTIFICATES))):
        registry.register(collector)
    text = generate_latest(registry).decode()
    for family in (*SERVED, *FRONT_END, *ANSWERED, *INPUT, *ACCESS, *TLS):
        assert text.count(f"# TYPE {family.name} {family.kind}\n") == 1
