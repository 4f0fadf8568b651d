"""`railgun apply` on a cluster: streams whose topics have records are made with all their metrics, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.cli.main import main
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import Topics
from tests.broker.own_topics import own_prefix
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.topics.input_topic import InputTopic
from tests.unit.local_units import quick_settings

STREAM = """
[streams.{name}]
partitioners = ["card"]
[streams.{name}.fields]
card = "string"
amount = "long"
"""
METRICS = """
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS spent FROM {name} GROUP BY card OVER INFINITE"
[[metrics]]
sql = "SELECT max(amount) AS most FROM {name} GROUP BY card OVER SLIDING 1 DAY"
[[metrics]]
sql = "DERIVE spent / n AS mean FROM {name}"
"""
EVENTS = 40


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(kafka, tmp_path / "cluster") as made:
        made.start_units(1)
        yield made


def apply(served: RunningFrontEnd, file: Path, text: str) -> int:
    file.write_text(text, encoding="utf-8")
    return main(["apply", str(file), "--url", str(served.client.base_url).rstrip("/")])


def test_every_reply_to_records_that_were_there_first_has_all_metrics(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = cluster.serve()
    for number in range(6):
        name, topic = f"s{number}", own_prefix("prod")
        with InputTopic(cluster.broker, cluster.prefix, name, name=topic) as records:
            records.send([{"card": "c", "amount": amount} for amount in range(EVENTS)])
            text = STREAM + f'[streams.{{name}}.input]\ntopics = ["{topic}"]\n' + METRICS
            assert apply(served, tmp_path / f"{name}.toml", text.format(name=name)) == 0
            replies = records.await_replies(EVENTS)
        sums = [sum(range(amount + 1)) for amount in range(EVENTS)]
        assert [each["metrics"] for each in replies] == [
            {"n": i + 1, "spent": total, "most": i, "mean": total / (i + 1)} for i, total in enumerate(sums)
        ]
        assert not any("warming" in each for each in replies)
        made = [f"created metric {name}.{metric}" for metric in ("n", "spent", "most", "mean")]
        said = capsys.readouterr()
        assert said.out.splitlines() == [f"created stream {name}", *made]
        assert said.err == ""


def test_nothing_is_made_of_a_file_whose_streams_write_the_same_topic(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = cluster.serve()
    out = Topics(cluster.prefix).output("one")
    text = STREAM.format(name="one") + STREAM.format(name="two") + f'[streams.two.output]\ntopic = "{out}"\n'
    assert apply(served, tmp_path / "both.toml", text) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"railgun apply: streams: one: {out} cannot be the output topic: it is the output topic of another stream; "
        "name another one; nothing was applied\n"
    )
    assert served.client.get("/v1/streams").json() == {"streams": []}
    # The same with a stream that the file does not name.
    assert apply(served, tmp_path / "one.toml", STREAM.format(name="one")) == 0
    own = STREAM.format(name="three") + text[len(STREAM.format(name="one")) :]
    assert apply(served, tmp_path / "others.toml", own) == 2
    assert "two: " in capsys.readouterr().err
    assert [each["name"] for each in served.client.get("/v1/streams").json()["streams"]] == ["one"]


def test_what_stays_is_said_if_the_server_refuses_a_later_stream(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = cluster.serve()
    topic = Topics(cluster.prefix).tasks("two", "card")
    with KafkaTransport(quick_settings(cluster.broker)) as transport:
        transport.create_topic(topic, 3)
    text = "".join((STREAM.format(name=name)) for name in ("one", "two"))
    text += "".join((METRICS.format(name=name)) for name in ("one", "two"))
    assert apply(served, tmp_path / "both.toml", text) == 2
    said = capsys.readouterr()
    made = ["stream one", *(f"metric one.{each}" for each in ("n", "spent", "most", "mean"))]
    assert said.out.splitlines() == [f"created {each}" for each in made]
    stays, why = said.err.splitlines()
    assert stays == f"railgun apply: not all was applied; what stays: {', '.join(made)}"
    assert f"the topic {topic} is there already" in why
