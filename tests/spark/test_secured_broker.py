"""Spark jobs on a broker with SASL and ACLs, as spark-submit runs them: with the rights of their roles, and without."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import railgun.spark_submit
from railgun.catalog.definitions import parse_definitions
from railgun.messaging.embedded.read_only import ReadOnlyLog
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry import evolution
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import PREFIX, Topics
from tests.broker.own_topics import own_prefix
from tests.broker.secured_broker import Right, SecuredBroker, passed, rights_of
from tests.forked import ROOT, run
from tests.spark.folders import DEFINITIONS, START_MS, STEP_MS, payments, small_engine

N = 40
ROLES = {"validate": "spark", "backfill": "backfill"}
_AUDIT = "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=debug"
_QUIET_SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.log.level": "INFO",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}


def password(role: str) -> str:
    return f"pw-of-{role}-not-to-be-seen"


class Jobs:
    """A secured broker with a stream `payments` and its recorded replies, and how the jobs are called.

    words: of each job, what stands behind its name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._numbers = folder, itertools.count()
        self.broker = SecuredBroker(folder / "broker", [_AUDIT])
        self.broker.begin()
        with small_engine(folder / "engine") as engine:
            engine.apply(DEFINITIONS)
            replies = engine.score_many("payments", payments(0, N).to_pylist())
        self.prefix = own_prefix("j")
        self._fill(folder / "engine", [json.dumps(dict(each)).encode() for each in replies])
        self.rights: dict[str, list[Right]] = {}
        for role in ROLES.values():
            self.rights[role] = rights_of(role, self.prefix, [], folder / "acls")
            self.broker.add_user(role, password(role))
            self.broker.grant(role, self.rights[role])
        pq.write_table(payments(0, N), folder / "h.parquet")

    def _fill(self, engine: Path, replies: list[bytes]) -> None:
        """Have the topics of a cluster, with the records of an engine and what it has replied."""
        settings, topics = KafkaSettings(self.broker.open_address), Topics(self.prefix)
        with KafkaRegistry(settings, self.prefix) as registry:
            registry.change(lambda catalog: evolution.missing(catalog, parse_definitions(DEFINITIONS)))
        with KafkaTransport(settings) as to, ReadOnlyLog(engine / "log") as log:
            to.create_topic(topics.output("payments"), 1)
            to.append(topics.output("payments"), 0, replies)
            for topic, partitions in log.topics().items():
                if topic == Topics().catalog:
                    continue
                name = self.prefix + topic.removeprefix(PREFIX)
                if name not in to.topics():
                    to.create_topic(name, partitions)
                for partition in range(partitions):
                    if log.end_offset(topic, partition):
                        to.append(name, partition, log.read(topic, partition, 0, N, 1 << 20).values())

    def words(self, job: str, given: str | None = None) -> list[str]:
        """Of a job, as spark-submit is given them; a backfill is of a new stream each time.

        given: the password; None: the right one.
        """
        role = ROLES[job]
        config = self.folder / f"{job}.toml"
        own = passed(role, given or password(role))
        config.write_text(
            f'[cluster]\nbroker = "{self.broker.guarded}"\ntopic_prefix = "{self.prefix}"\n[kafka]\n'
            + "".join(f"{key} = {json.dumps(value)}\n" for key, value in own.items())
        )
        if job == "validate":
            return [job, "--config", str(config), "--stream", "payments", "--json"]
        stream = f"older_{next(self._numbers)}"
        definitions = self.folder / f"{stream}.toml"
        definitions.write_text(DEFINITIONS.replace("payments", stream))
        files = [str(definitions), str(self.folder / "h.parquet")]
        cut_ms = START_MS + STEP_MS * N
        where = ["--data", str(self.folder / "node"), "--until", str(cut_ms)]
        return [job, *files, *where, "--config", str(config), "--json"]

    def submit(self, job: str, events: Path) -> "subprocess.CompletedProcess[str]":
        """Run a job on a Spark of its own. events: the folder for what Spark writes down of its work."""
        events.mkdir()
        settings = {**_QUIET_SPARK, "spark.eventLog.dir": events.as_uri()}
        given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        script = str(Path(railgun.spark_submit.__file__))
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": str(ROOT),
        }
        command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]", *given]
        return subprocess.run(
            [*command, script, *self.words(job)], env=environment, capture_output=True, text=True, check=False
        )

    def denied(self, role: str) -> list[str]:
        """What the broker has denied a user."""
        text = (self.broker.folder / "broker.log").read_text(encoding="utf-8")
        lines = [each for each in text.splitlines() if f"Principal = User:{role} is " in each]
        assert any("is Allowed" in each for each in lines), role
        return [each for each in lines if "is Denied" in each]


@pytest.fixture(scope="module")
def jobs(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    made = Jobs(tmp_path_factory.mktemp("jobs"))
    try:
        yield made
    finally:
        made.broker.stop()


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("job", ROLES)
def test_a_job_does_its_work_with_the_rights_of_its_role(jobs: Jobs, job: str) -> None:
    role, events = ROLES[job], jobs.folder / f"events-{job}"
    ended = jobs.submit(job, events)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-4_000:]
    report = json.loads(ended.stdout.splitlines()[-1])
    if job == "validate":
        assert report["mismatches"] == 0
        assert report["values"] > 0
    else:
        assert report["installed"]
    assert jobs.denied(role) == []
    written = [file.read_bytes() for file in events.rglob("*") if file.is_file()]
    assert any(b"SparkListenerApplicationStart" in each for each in written)
    for said in (ended.stdout.encode(), ended.stderr.encode(), *written):
        assert password(role).encode() not in said


def _lacking() -> list[tuple[str, str, str]]:
    topic = [("backfill", right, "topic") for right in ("Read", "Write")]
    return [("validate", "Read", "topic"), *topic, ("backfill", "Write", "transactional-id")]


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("job", "right", "resource"), _lacking())
def test_a_job_that_lacks_a_right_ends_with_one_line(jobs: Jobs, job: str, right: str, resource: str) -> None:
    role = ROLES[job]
    (lost,) = [each for each in jobs.rights[role] if (each.operation, each.resource) == (right, resource)]
    jobs.broker.revoke(role, lost)
    try:
        ended = run("railgun.spark_submit", jobs.words(job))
    finally:
        jobs.broker.grant(role, [lost])
    line = _only_line(ended, job, password(role))
    # Without Read a user does not even see which topics there are.
    asked = "Describe" if job == "validate" else right
    assert f"Give this user the right {asked} on the {resource.replace('-', ' ')}" in line
    assert jobs.prefix in line


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("job", ROLES)
def test_a_job_with_a_wrong_password_ends_with_one_line(jobs: Jobs, job: str) -> None:
    ended = run("railgun.spark_submit", jobs.words(job, "wrong-and-not-to-be-seen"))
    line = _only_line(ended, job, "wrong-and-not-to-be-seen")
    assert jobs.broker.guarded in line
    assert "Authentication failed" in line
    assert "Check the security settings of" in line


def _only_line(ended: "subprocess.CompletedProcess[str]", job: str, secret: str) -> str:
    """What a job that failed has said."""
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert ended.stdout == ""
    assert secret not in ended.stderr
    assert "Traceback" not in ended.stderr
    *logged, line = ended.stderr.splitlines()
    assert line.startswith(f"railgun {job}: ")
    assert not any(each.startswith("railgun ") for each in logged)
    return line
