"""Every page of the console, of three real nodes, under TLS, with a token: from nothing registered to dead letters."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from frontend.kafka.configuration import FrontEndConfiguration
from railgun.config.settings import ConsoleSettings, TlsSettings
from tests.broker.own_topics import own_prefix
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.test_console_access import found as wrong_for_axe
from tests.browser.test_console_live import opened
from tests.browser.test_console_lookup import place
from tests.certificates import Authority
from tests.failover.running_cluster import Node
from tests.frontend.access.callers import bearer, secret, token
from tests.frontend.kafka.cluster import RunningFrontEnd, define, front_end
from tests.frontend.topics.input_topic import InputTopic
from tests.unit.local_units import awaited, quick_settings

STREAM = """
[streams.payments]
id = "tx_id"
partitioners = ["card", "*"]
partitions = 2
[streams.payments.fields]
tx_id = "string"
card = "string"
amount = "double"
[[metrics]]
sql = "SELECT count(*) AS card_n FROM payments GROUP BY card OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS n FROM payments OVER INFINITE"
[[metrics]]
sql = "DERIVE card_n >= 1 AS start_card FROM payments"
"""
NODES = ("node-1", "node-2", "node-3")
EVENT = {"tx_id": "t1", "card": "c1", "amount": 5.0}
PAGES = (
    ("overview", "Nothing to warn of."),
    ("streams", "tx_id, card, amount"),
    ("streams/payments", "The same as a table"),
    ("lookup", "Look up a key of payments"),
    (place("payments", {"keys": [{"card": "c1"}]}), "True: start_card."),
    ("live", "Last events of payments"),
    ("live/payments", "True: start_card."),
    ("dead", "Dead letters of payments"),
    ("dead/payments", "amount: the string 'much' is not a double"),
    ("cluster", re.compile("node-1.*node-2.*node-3", re.DOTALL)),
    ("changes", "derived metric added"),
)
"""Each with what it shows once everything that it asks for is there."""


@pytest.fixture
def prefix() -> str:
    return own_prefix("p")


@pytest.fixture
def served(kafka: str, prefix: str, tmp_path: Path) -> Iterator[RunningFrontEnd]:
    """A front-end of three nodes, which are processes. Nothing is registered."""
    authority = Authority(tmp_path / "tls")
    pair = authority.pair()
    tls = TlsSettings(str(pair.certificate), str(pair.key))
    console = ConsoleSettings(samples=100)
    where = FrontEndConfiguration(quick_settings(kafka), prefix, console=console)
    nodes: list[Node] = []
    try:
        for name in NODES:
            nodes.append(Node(tmp_path / name, name, kafka, prefix, 1))
        more = {"tls": tls, "tokens": (token("ada", "*"),), "context": authority.client_context()}
        with front_end(where, **more) as running:
            running.client.headers["Authorization"] = bearer("ada")
            awaited(lambda: live_nodes(running) == len(NODES))
            yield running
    finally:
        for node in nodes:
            node.kill()


def live_nodes(running: RunningFrontEnd) -> int:
    return sum(each["alive"] for each in running.client.get("/v1/cluster").json()["nodes"])


def has_answered_all(running: RunningFrontEnd) -> bool:
    """Whether an event is answered, and each task has the copies that it should have."""
    answer = running.post("/v1/streams/payments/events", EVENT)
    return answer.status_code == 200 and running.client.get("/v1/cluster").json()["warnings"] == []


def check_page(shown: Tab) -> None:
    """Nothing is wrong with what is shown."""
    # What a cluster that has just begun warns of goes by itself.
    expect(shown.page.locator(".problem, .wrong, .disconnected")).to_have_text([], timeout=PATIENCE_MS)
    assert wrong_for_axe(shown.page) == []
    shown.check_layout()


@pytest.mark.timeout(400)
def test_every_page_of_three_nodes_under_tls(
    browser: Browser, kafka: str, prefix: str, served: RunningFrontEnd, tmp_path: Path
) -> None:
    url = served.service.url
    assert url.startswith("https://")
    with (
        InputTopic(kafka, prefix, "payments") as topic,
        tab(browser, url, ignore_https_errors=True, accept_downloads=True) as shown,
    ):
        shown.open()
        shown.give(secret("ada"))
        shown.sees("kcat -P")
        check_page(shown)
        define(served.client, STREAM)
        awaited(lambda: has_answered_all(served))
        topic.send([{"tx_id": "t2", "amount": "much"}])
        topic.await_letters(1)
        for where, text in PAGES:
            shown.open(where)
            if where == "live/payments":
                opened(shown, "t1")
            shown.sees(text)
            check_page(shown)
        with shown.page.expect_download(timeout=PATIENCE_MS) as saved:
            shown.page.get_by_role("button", name="Support bundle").click()
        saved.value.save_as(tmp_path / "bundle.zip")
        check_page(shown)
        with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
            cluster = json.loads(bundle.read("cluster.json"))
        assert {each["name"] for each in cluster["nodes"]} == set(NODES)
