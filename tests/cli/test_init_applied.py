"""What `railgun init` makes of each kind of sample is taken by `railgun apply`, and answers the events; or it says one
clear sentence.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from railgun.cli.main import main
from railgun.config.settings import InputSettings
from railgun.demo.flights import read_flights
from railgun.demo.payments import payments
from tests.cli.test_init import csv_file, parquet_file
from tests.cli.test_init_of_topics import as_json, nested_payments, topic_with
from tests.draft.drafts import changes, ndjson, orders, read
from tests.frontend.formats.avro_events import encoded, framed
from tests.frontend.formats.schema_registry import schema_registry
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.paths.doors import avro_schema
from tests.paths.protobuf_documents import encoded as encoded_message

EVENTS = 60


class Applied:
    """A cluster to which drafts are applied."""

    def __init__(self, cluster: LocalCluster, registry: str, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        cluster.start_units(1)
        self.served = cluster.serve(intake=InputSettings(schema_registry_url=registry))
        self.config = folder / "railgun.toml"
        self.config.write_text(f'[input]\nschema_registry_url = "{registry}"\n')

    def drafted(self, stream: str, *sample: str) -> str:
        """Draft a stream of a sample and apply it; the name of its first metric."""
        file = self.folder / f"{stream}.toml"
        assert main(["init", *sample, "--stream", stream, "--output", str(file)]) == 0
        url = str(self.served.client.base_url).rstrip("/")
        assert main(["apply", str(file), "--url", url]) == 0
        assert stream in self.served.client.get("/v1/streams").text
        return read(file.read_text(encoding="utf-8")).metrics[0].name

    def of_file(self, stream: str, sample: str, events: list[dict[str, Any]]) -> None:
        metric = self.drafted(stream, sample)
        first = self.served.score(stream, events[0])
        assert first["metrics"][metric] == 1
        rest = self.served.post(f"/v1/streams/{stream}/events", events[1:]).json()
        assert [each for each in rest if "errors" in each] == []

    def of_topic(self, stream: str, values: list[bytes | None], replies: int) -> None:
        name = topic_with(self.cluster.broker, values)
        sample = ["--broker", self.cluster.broker, "--topic", name, "--config", str(self.config)]
        metric = self.drafted(stream, *sample)
        with InputTopic(self.cluster.broker, self.cluster.prefix, stream, name=name, makes=False) as topic:
            found = topic.await_replies(replies)
            topic.read_all()
            assert len(topic.replies) == replies
            assert [headers_of(each)["reason"] for each in topic.letters] == []
            assert found[0]["metrics"][metric] == 1


def as_in_csv(event: dict[str, Any]) -> dict[str, Any]:
    """An event of a CSV file, where digits are numbers."""
    return {
        name: json.loads(str(value)) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", str(value)) else value
        for name, value in event.items()
    }


@contextmanager
def applied(broker: str, folder: Path) -> Iterator[Applied]:
    found = nested_payments(1)[0]
    answers = {
        "/schemas/ids/1": {"schema": json.dumps(avro_schema(found))},
        "/schemas/ids/2": {"schema": encoded_message(found).descriptor, "schemaType": "PROTOBUF"},
        "/schemas/ids/3": {"schema": "{}", "schemaType": "JSON"},
    }
    with schema_registry(answers) as registry, LocalCluster(broker, folder / "cluster") as cluster:
        yield Applied(cluster, registry.url, folder)


def test_each_sample(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    flights = [json.loads(json.dumps(asdict(each))) for each in read_flights()[:500]]
    paid = [dict(each) for each in payments(seed=2, cards=100, days=35).events[:500]]
    nested = nested_payments(EVENTS)
    avro = avro_schema(nested[0])
    with applied(kafka, tmp_path) as cluster:
        cluster.of_file("flights", parquet_file("flights.parquet", flights), flights[:EVENTS])
        cluster.of_file("paid", csv_file("payments.csv", paid), [as_in_csv(each) for each in paid[:EVENTS]])
        cluster.of_file("orders", str(ndjson(Path("orders.ndjson"), orders())), orders()[:EVENTS])
        topics: dict[str, tuple[list[bytes | None], int]] = {
            "nested": ([*as_json(orders(EVENTS))], EVENTS),
            # A delete and its tombstone are no events.
            "rows": ([*as_json(changes(EVENTS)), None], EVENTS - EVENTS // 10),
            "avro": ([framed(encoded(each, avro), 1) for each in nested], EVENTS),
            "protobuf": ([framed(b"\0" + encoded_message(each).value, 2) for each in nested], EVENTS),
            "json_schema": ([framed(each, 3) for each in as_json(nested)], EVENTS),
        }
        for stream, (values, replies) in topics.items():
            cluster.of_topic(stream, values, replies)
    capsys.readouterr()
    Path("bad.csv").write_text("4111111111111111,12.50\n4111111111111112,1.00\n")
    pictures: list[bytes | None] = [b"\x89PNG\r\n\x1a\n" + bytes(range(n)) for n in range(9)]
    for sample, sentence in (
        (["bad.csv"], "its first line seems to be an event"),
        (["--broker", kafka, "--topic", topic_with(kafka, [])], "the topic has no records"),
        (["--broker", kafka, "--topic", topic_with(kafka, pictures)], "neither a JSON object nor in Confl"),
    ):
        assert main(["init", *sample, "--output", "none.toml"]) == 2
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n"), sentence in said.err) == ("", 1, True), said.err
        assert not Path("none.toml").exists()
