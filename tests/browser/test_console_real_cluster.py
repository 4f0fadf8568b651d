"""The console of a real cluster: nodes of a broker, and a front-end that is asked."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from frontend.kafka.configuration import FrontEndConfiguration
from railgun.cluster.silence import CLOSES_S
from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.failover.running_cluster import RunningCluster
from tests.frontend.kafka.cluster import RunningFrontEnd, front_end
from tests.halting import halted
from tests.node.leader.conftest import nodes as nodes
from tests.node.leader.leading_nodes import Nodes
from tests.unit.local_units import awaited, quick_settings


@pytest.fixture
def running(kafka: str, nodes: Nodes) -> Iterator[RunningFrontEnd]:
    with front_end(FrontEndConfiguration(quick_settings(kafka), nodes.prefix)) as found:
        yield found


def test_a_real_cluster_is_shown_and_a_node_emptied(
    browser: Browser, nodes: Nodes, running: RunningFrontEnd
) -> None:
    """The nodes have no units, so that no copy reports."""
    with tab(browser, running.service.url) as shown:
        shown.open("cluster")
        shown.sees("There is no node.")
        nodes.start(1)
        nodes.start(2)
        awaited(lambda: nodes.places() == {frozenset({"node-1", "node-2"})})
        shown.sees("node-2")
        expect(shown.rows("Nodes")).to_have_count(2, timeout=PATIENCE_MS)
        expect(shown.page.locator("td .copy.unknown")).to_have_count(8, timeout=PATIENCE_MS)
        page = shown.page
        page.get_by_role("button", name="drain node-2").click()
        shown.sees("4 tasks would have fewer than 2 copies", "dialog")
        order = page.get_by_role("dialog").get_by_role("button", name="Drain node-2")
        order.click()
        shown.sees("1 node would be left for 2 copies", "dialog")
        page.get_by_label("Let tasks have fewer copies").check()
        order.click()
        expect(page.locator("dialog")).to_have_count(0, timeout=PATIENCE_MS)
        shown.sees("draining")
        page.get_by_role("button", name="undrain node-2").click()
        page.get_by_role("dialog").get_by_role("button", name="Undrain node-2").click()
        shown.misses("draining")


@contextmanager
def two_nodes(
    browser: Browser, kafka: str, folder: Path, seed: int
) -> Iterator[tuple[RunningCluster, RunningFrontEnd, Tab]]:
    """Yield nodes that are processes, whose units answer events; a front-end; and its console, opened."""
    cluster = RunningCluster(kafka, folder, seed=seed, nodes=2)
    try:
        with (
            front_end(FrontEndConfiguration(quick_settings(kafka), cluster.prefix)) as running,
            tab(browser, running.service.url) as shown,
        ):
            shown.open()
            yield cluster, running, shown
    finally:
        cluster.close()


# A node is called lost once a stop would have ended, and a front-end looks every 5 s.
LOST_MS = PATIENCE_MS + 2_000 * round(CLOSES_S)


@pytest.mark.timeout(300)
def test_a_unit_and_a_node_that_are_killed_are_warned_of(
    browser: Browser, kafka: str, tmp_path: Path
) -> None:
    with two_nodes(browser, kafka, tmp_path, seed=5) as (cluster, running, shown):
        figures = shown.page.locator("section[data-key=cluster] .figures")

        def is_well() -> None:
            for each in ("Nodes live 2", "Copies answering 4", "Copies silent 4", "Moves left 0"):
                name, _, value = each.rpartition(" ")
                figure = figures.locator("div").filter(has_text=name).locator("dd")
                expect(figure).to_have_text(value, timeout=PATIENCE_MS)

        is_well()
        shown.sees("Nothing to warn of.")
        unit = cluster.nodes["node-1"].unit(0)
        assert unit is not None
        os.kill(unit, signal.SIGKILL)
        warnings = shown.page.get_by_label("Warnings")
        ended = "Unit 0 of node-1 ended 1 time in the last 10 minutes; last: killed by signal 9. Cluster"
        expect(warnings).to_contain_text(ended, timeout=PATIENCE_MS)
        # A node is called lost only if another one is heard, and takes over what a look has seen it answer.
        is_well()
        _awaits_a_look(running)
        cluster.nodes.pop("node-2").kill()
        expect(warnings).to_contain_text("1 node is away: node-2, last heard 20", timeout=PATIENCE_MS)
        expect(warnings).to_contain_text("and 1 can have some", timeout=PATIENCE_MS)
        warnings.get_by_role("link", name="Cluster").first.click()
        expect(shown.rows("Nodes").filter(has_text="node-2")).to_contain_text("away", timeout=PATIENCE_MS)
        expect(shown.rows("Nodes").filter(has_text="node-1")).to_contain_text("Unit 0 of node-1 ended 1 time")
        lately = shown.page.locator("section[data-key=lately]")
        # It may have answered all of them, since the other one's unit was killed.
        lost = re.compile(
            r"node-2 was lost: it fell silent without closing its copies; node-1 took over [1-4] tasks?"
        )
        expect(lately).to_contain_text(lost, timeout=LOST_MS)
        expect(lately).to_contain_text("unit 0 of node-1 ended: killed by signal 9")


@pytest.mark.timeout(300)
def test_a_node_that_is_stopped_in_order_is_told_from_one_that_is_lost(
    browser: Browser, kafka: str, tmp_path: Path
) -> None:
    """The other test loses one. Each node has a copy of every task, so that the one that is left takes over."""
    with two_nodes(browser, kafka, tmp_path, seed=6) as (cluster, running, shown):
        shown.sees("Nothing to warn of.")
        _answers_all(shown)
        _awaits_a_look(running)
        lately = shown.page.locator("section[data-key=lately]")
        assert cluster.nodes["node-2"].stop() == 0
        stopped = re.compile(r"node-2 has left after closing its copies; node-1 took over [1-4] tasks?")
        expect(lately).to_contain_text(stopped, timeout=PATIENCE_MS)
        what_next = "start what is away, or see its log: no other node can have its copies"
        expect(shown.page.get_by_label("Warnings")).to_contain_text(what_next, timeout=PATIENCE_MS)
        lately.get_by_role("link", name="Cluster").click()
        shown.sees(stopped, "section[data-key=lately]")
        expect(shown.rows("Nodes").filter(has_text="node-2")).to_contain_text("Last heard 20")
        cluster.nodes["node-2"].start()
        shown.sees("node-2 is back", "section[data-key=lately]")


@pytest.mark.timeout(300)
def test_a_unit_that_is_halted_is_warned_of(
    browser: Browser, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The front-end has just come to know the nodes, so that each would be said to start.
    monkeypatch.setattr("railgun.cluster.observed.STARTS_S", 0.0)
    with two_nodes(browser, kafka, tmp_path, seed=7) as (cluster, running, shown):
        _answers_all(shown)
        awaited(lambda: running.client.get("/v1/cluster").json()["nodes"][0]["active"] > 0)
        _awaits_a_look(running)
        unit = cluster.nodes["node-1"].unit(0)
        assert unit is not None
        warnings = shown.page.get_by_label("Warnings")
        with halted([unit]):
            silent = "1 unit says nothing: unit 0 of node-1, last heard 20"
            expect(warnings).to_contain_text(silent, timeout=PATIENCE_MS)
            warnings.get_by_role("link", name="Cluster").first.click()
            row = shown.rows("Nodes").filter(has_text="node-1")
            expect(row).to_contain_text("4 do not report", timeout=PATIENCE_MS)
            expect(row.locator(".state")).to_have_class("state off")
            taken = re.compile(r"unit 0 of node-1 fell silent; node-2 took over [1-4] tasks?")
            shown.sees(taken, "section[data-key=lately]")
        expect(row.locator(".state")).to_have_class("state good", timeout=PATIENCE_MS)
        shown.misses("says nothing")


def _answers_all(shown: Tab) -> None:
    answering = shown.page.locator("section[data-key=cluster] .figures div").filter(
        has_text="Copies answering"
    )
    expect(answering).to_contain_text("4", timeout=PATIENCE_MS)


def _awaits_a_look(running: RunningFrontEnd) -> None:
    def looked_ms() -> int:
        found = running.client.get("/v1/cluster").json()["lately"]["looked_ms"]
        return int(found or 0)

    before_ms = looked_ms()
    awaited(lambda: looked_ms() > before_ms)
