"""A real Prometheus scrapes a cluster with TLS and a failed copy: every rule and panel finds what it looks for."""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest

from tests.watching.expressions import DASHBOARDS, RULES, alerts, selectors, shown
from tests.watching.prometheus import Prometheus, program, prometheus
from tests.watching.watched_cluster import STARTS_S, TOKEN, WatchedCluster, awaited, traffic, watched_cluster

# A test that waits for a cluster, for the broker to be asked about its logs, and for rates.
pytestmark = pytest.mark.timeout(2 * STARTS_S)
CONFIG = """
global: {{scrape_interval: 5s, scrape_timeout: 5s, evaluation_interval: 5s}}
rule_files: ["{rules}"]
scrape_configs:
"""
JOB = """
  - job_name: {name}
    scheme: https
    tls_config: {{ca_file: "{ca}"}}
    authorization: {{credentials_file: "{token}"}}
    static_configs: [{{targets: {targets}}}]
"""
EXPECTED = {"RailgunCopyFailed", "RailgunTasksUnanswered", "RailgunTooFewCopies"}
"""What a task that has failed on both of its nodes makes true."""
WELL = {
    *("RailgunNotReady", "RailgunNobodyLeads", "RailgunClockOff", "RailgunCopyGivenUp", "RailgunLogShort"),
    *("RailgunRecordsDamaged", "RailgunCertificateEnds"),
}
"""What is not so here, however slow the machine is."""


def configuration(cluster: WatchedCluster, folder: Path) -> str:
    token = folder / "token"
    token.write_text(TOKEN)
    jobs = {"railgun-front-ends": ["frontend"], "railgun-nodes": ["a", "b"]}
    return CONFIG.format(rules=RULES) + "".join(
        JOB.format(
            name=job, ca=cluster.ca, token=token, targets=[urlsplit(cluster.urls[name]).netloc for name in names]
        )
        for job, names in jobs.items()
    )  # fmt: skip


class Scene(NamedTuple):
    """The cluster, a client of its front-end, and the Prometheus that scrapes all of it."""

    cluster: WatchedCluster
    client: httpx.Client
    prometheus: Prometheus


@pytest.fixture(scope="module")
def scene(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    program("prometheus")
    folder = tmp_path_factory.mktemp("watched")
    with watched_cluster(kafka, folder) as (cluster, topic), cluster.client() as client:
        cluster.break_a_task()
        with prometheus(folder, configuration(cluster, folder)) as found:
            rounds = iter(range(10_000))

            def finds_all() -> bool:
                traffic(cluster, topic, client, next(rounds))
                return not missing(found)

            # The tests say which are missing.
            with suppress(AssertionError):
                awaited(finds_all, "series")
            yield Scene(cluster, client, found)


@pytest.fixture
def scraped(scene: Scene) -> Prometheus:
    return scene.prometheus


def missing(found: Prometheus) -> list[str]:
    """What finds nothing: selectors of rules and dashboards, and whole expressions of the latter."""
    panels = [expr for board in DASHBOARDS for expr in shown(board)]
    wanted = set[str]().union(*(selectors(expr) for expr in (*panels, *(each.expr for each in alerts()))))
    without = sorted(each for each in wanted if not found.has_series(each))
    return without or [expr for expr in panels if not found.query(expr)]


def test_every_selector_and_every_panel_finds_series(scraped: Prometheus) -> None:
    assert missing(scraped) == []


def test_every_process_is_scraped_over_tls(scraped: Prometheus) -> None:
    awaited(lambda: {each["health"] for each in scraped.targets()} == {"up"}, "scrapes")
    targets = scraped.targets()
    assert len(targets) == 3
    assert {each["labels"]["job"] for each in targets} == {"railgun-front-ends", "railgun-nodes"}
    assert all(each["scrapeUrl"].startswith("https://") for each in targets)


def test_a_failed_copy_is_found_and_what_is_well_is_not(scraped: Prometheus) -> None:
    """By the rules' expressions, which have not been true for long enough yet to fire."""
    failed = scraped.query(next(each.expr for each in alerts() if each.name == "RailgunCopyFailed"))
    assert {each["metric"]["stream"] for each in failed} == {"broken"}
    assert len({each["metric"]["instance"] for each in failed}) == 2

    def true() -> set[str]:
        return {each.name for each in alerts() if scraped.query(each.expr)}

    awaited(lambda: true() >= EXPECTED and not true() & WELL, "what the rules find")


def test_a_support_bundle_of_it_names_the_failure_and_has_no_secret(scene: Scene) -> None:
    with zipfile.ZipFile(io.BytesIO(scene.client.get("/v1/support").content)) as bundle:
        files = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert json.loads(files["about.json"])["left_out"] == {}
    copies = [copy for task in json.loads(files["cluster.json"])["tasks"] for copy in task["copies"]]
    assert {copy["state"] for copy in copies} >= {"answering", "failed"}
    assert json.loads(files["settings.json"])["cluster"]["broker"] == scene.cluster.broker
    assert "railgun_tasks_unanswered" in files["metrics.txt"]
    everything = "".join(files.values())
    assert not [each for each in scene.cluster.secrets() if each in everything]
