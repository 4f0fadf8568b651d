"""Every page and action of the console, of three real nodes: under TLS with a token, and with neither."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from frontend.kafka.configuration import FrontEndConfiguration
from railgun.config.settings import ConsoleSettings, TlsSettings
from tests.broker.own_topics import own_prefix
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.test_console_access import found as wrong_for_axe
from tests.browser.test_console_live import names, opened
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
MISTAKE = {"tx_id": "t2", "amount": "much"}
QUERY = "SELECT max(amount) AS most FROM payments GROUP BY card OVER INFINITE"
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


@pytest.fixture(params=[True, False], ids=["TLS and a token", "neither"])
def is_guarded(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def guard(folder: Path) -> dict[str, Any]:
    """TLS and a token, as a front-end takes them."""
    authority = Authority(folder)
    pair = authority.pair()
    tls = TlsSettings(str(pair.certificate), str(pair.key))
    return {"tls": tls, "tokens": (token("ada", "*"),), "context": authority.client_context()}


@pytest.fixture
def served(kafka: str, prefix: str, tmp_path: Path, is_guarded: bool) -> Iterator[RunningFrontEnd]:
    """A front-end of three nodes, which are processes. Nothing is registered."""
    console = ConsoleSettings(samples=100)
    where = FrontEndConfiguration(quick_settings(kafka), prefix, console=console)
    nodes: list[Node] = []
    try:
        for name in NODES:
            nodes.append(Node(tmp_path / name, name, kafka, prefix, 1))
        with front_end(where, **(guard(tmp_path / "tls") if is_guarded else {})) as running:
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


def register(shown: Tab) -> None:
    """A metric, by the form."""
    shown.open("streams/payments")
    shown.page.get_by_label("A query, or a DERIVE").fill(QUERY)
    shown.page.get_by_role("button", name="Register 1 metric").click()
    shown.sees("Registered: most.", "console-query")
    row = shown.rows("Metrics").filter(has_text="max(amount)")
    expect(row).to_contain_text("answers", timeout=PATIENCE_MS)
    check_page(shown)


def show_values(shown: Tab) -> None:
    """What a metric was answered lately."""
    shown.page.get_by_role("button", name="values of card_n").click()
    shown.sees("in some of the replies", "console-answered")
    assert shown.cells("Histogram")[0][0] == "1"
    check_page(shown)


def stop_and_go_on(shown: Tab, served: RunningFrontEnd) -> None:
    shown.open("live/payments")
    shown.sees("t1")
    shown.page.get_by_role("button", name="Stop").click()
    shown.sees(", stopped")
    served.score("payments", {**EVENT, "tx_id": "t9"})
    shown.sees(re.compile(r"as of ([3-9]|\d\d) s ago"))
    assert names(shown)[0] == "t1"
    check_page(shown)
    shown.page.get_by_role("button", name="Go on").click()
    shown.sees("t9")
    opened(shown, "t9")
    shown.sees("most", ".one")
    check_page(shown)


def read_anew(shown: Tab, topic: InputTopic) -> None:
    """Dead letters."""
    shown.open("dead/payments")
    shown.sees("1 letter, ")
    topic.send([MISTAKE])
    topic.await_letters(2)
    shown.page.get_by_role("button", name="Read anew").click()
    shown.sees("2 letters, ")
    check_page(shown)


def drain_and_undrain(shown: Tab) -> None:
    """A node."""
    shown.open("cluster")
    shown.page.get_by_role("button", name="drain node-3").click()
    shown.sees("would be made on other nodes", "dialog")
    assert wrong_for_axe(shown.page) == []
    shown.page.get_by_role("dialog").get_by_role("button", name="Drain node-3").click()
    state = shown.rows("Nodes").filter(has_text="node-3").locator(".state")
    expect(state).to_have_text("drained", timeout=PATIENCE_MS)
    check_page(shown)
    shown.page.get_by_role("button", name="undrain node-3").click()
    shown.page.get_by_role("dialog").get_by_role("button", name="Undrain node-3").click()
    expect(state).to_have_text("live", timeout=PATIENCE_MS)
    check_page(shown)


def save_bundle(shown: Tab, folder: Path) -> None:
    shown.open("changes")
    shown.sees("most")
    with shown.page.expect_download(timeout=PATIENCE_MS) as saved:
        shown.page.get_by_role("button", name="Support bundle").click()
    saved.value.save_as(folder / "bundle.zip")
    check_page(shown)
    with zipfile.ZipFile(folder / "bundle.zip") as bundle:
        cluster = json.loads(bundle.read("cluster.json"))
    assert {each["name"] for each in cluster["nodes"]} == set(NODES)


def look_at_pages(shown: Tab) -> None:
    for where, text in PAGES:
        shown.open(where)
        if where == "live/payments":
            opened(shown, "t1")
        shown.sees(text)
        check_page(shown)


@pytest.mark.timeout(400)
def test_every_page_and_action_of_three_nodes(
    browser: Browser, kafka: str, prefix: str, served: RunningFrontEnd, tmp_path: Path, is_guarded: bool
) -> None:
    url = served.service.url
    assert url.startswith("https://") == is_guarded
    with (
        InputTopic(kafka, prefix, "payments") as topic,
        tab(browser, url, ignore_https_errors=True, accept_downloads=True) as shown,
    ):
        shown.open()
        if is_guarded:
            shown.give(secret("ada"))
        shown.sees("kcat -P")
        check_page(shown)
        define(served.client, STREAM)
        awaited(lambda: has_answered_all(served))
        topic.send([MISTAKE])
        topic.await_letters(1)
        look_at_pages(shown)
        register(shown)
        show_values(shown)
        stop_and_go_on(shown, served)
        read_anew(shown, topic)
        drain_and_undrain(shown)
        save_bundle(shown, tmp_path)
