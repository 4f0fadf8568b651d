"""The console's page of a cluster, in a real browser: every state of a copy, orders, hostile texts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.browser.some_cluster import (
    ENDED,
    HOSTILE,
    ShownBackend,
    SomeCluster,
    copy,
    happening,
    node,
    task,
)
from tests.frontend.access.callers import secret, tokens
from tests.frontend.serving import Server, server, until


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("tests.frontend.serving.EmbeddedBackend", ShownBackend)
    with server(tmp_path / "data", tokens=tokens()) as found:
        yield found


@pytest.fixture
def cluster(running: Server) -> SomeCluster:
    found = running.backend.cluster
    assert isinstance(found, SomeCluster)
    return found


@pytest.fixture
def shown(browser: Browser, running: Server) -> Iterator[Tab]:
    with tab(browser, running.service.url) as made:
        made.open("cluster")
        made.give(secret("operate"))
        made.sees("Nodes")
        yield made


def states(shown: Tab, task: str) -> list[list[str]]:
    """What the grid says of a task: for each node the copies there, with the kind that colours them."""
    row = shown.rows("Copies of tasks").filter(has_text=task)
    return [
        [
            f"{each.get_attribute('class')}: {' '.join(each.inner_text().split())}"
            for each in cell.locator(".copy").all()
        ]
        for cell in row.locator("td").all()
    ]


def test_nodes_and_figures(shown: Tab) -> None:
    figures = dict(
        zip(shown.page.locator("dt").all_inner_texts(), shown.page.locator("dd").all_inner_texts())
    )
    assert figures == {
        "Leader": "node-1",
        "Tasks": "8",
        "Nobody answers": "3",
        "Copies wanted of each task": "2",
        "Copies behind": "4",
        "Copies failed": "1",
        "No report": "1",
        "Moves left": "3",
        "Plan": "12",
    }
    first, second, third = shown.cells("Nodes")
    assert first == [
        *(
            "node-1",
            "live payments/merchant/0 failed: no space left on device",
            "3",
            "4",
            "1",
            "48,000",
            "1",
            "Drain …",
        ),
        *("2", "a", "node-1.example.com", "0.1.0"),
    ]
    assert re.fullmatch(
        "live Unit 1 of node-2 ended 5 times in the last 10 minutes; last: No space left on device. "
        r"\(2023-11-14 .*\) "
        "The last order to drain it was refused: 1 node would be left for 2 copies",
        second[1],
    )
    expect(shown.rows("Nodes").nth(1).locator(".state")).to_have_class("state off")
    # A copy of it has failed, so it is not well.
    expect(shown.rows("Nodes").nth(0).locator(".state")).to_have_class("state off")
    failed = shown.rows("Nodes").nth(0).get_by_role("link", name="payments/merchant/0")
    expect(failed).to_have_attribute("href", "#/cluster/payments%2Fmerchant%2F0")
    shown.sees("Unit 1 of node-2 ended 5 times in the last 10 minutes; last: No space left on device.")
    assert re.fullmatch(
        r"away Last heard 2023-11-14 .* 2 tasks get no copy here until it is started again", third[1]
    )
    assert third[4:6] == ["1 does not report", "0"]
    shown.sees("Nobody answers 3 tasks: payments/merchant/0")
    assert re.search(r"as of \d+ s ago", shown.page.inner_text("main"))


def test_a_node_is_green_if_all_of_it_is_well(shown: Tab, cluster: SomeCluster) -> None:
    state = shown.rows("Nodes").nth(0).locator(".state")
    cluster.tasks = [
        task(0, *(copy("node-1", "failed", unit=unit, failure="a page is damaged") for unit in (0, 1)))
    ]
    shown.sees("payments/card/0 and 1 more copy failed: a page is damaged")
    expect(state).to_have_class("state off")
    cluster.tasks = [task(0, copy("node-1", "answering"))]
    expect(state).to_have_class("state good", timeout=PATIENCE_MS)
    cluster.nodes[0]["lost"] = 1
    expect(state).to_have_class("state off", timeout=PATIENCE_MS)
    del cluster.nodes[0]["lost"]
    expect(state).to_have_class("state good", timeout=PATIENCE_MS)
    # Of copies that do not report it is not known whether they are behind.
    unheard = [task(each, copy("node-1", None, None)) for each in range(2)]
    cluster.tasks = unheard
    expect(state).to_have_class("state off", timeout=PATIENCE_MS)
    assert shown.cells("Nodes")[0][4:6] == ["2 do not report", "not known"]
    cluster.tasks = [*unheard, task(2, copy("node-1", "behind", 7))]
    shown.sees("1; 2 do not report")
    assert shown.cells("Nodes")[0][5] == "7"


def test_a_node_whose_units_go_on_is_not_shown_as_gone(shown: Tab, cluster: SomeCluster) -> None:
    row = shown.rows("Nodes").nth(2)
    expect(row.locator(".state")).to_have_class("state bad")
    cluster.nodes[2]["units_go_on"] = True
    expect(row).to_contain_text("It is not in the group of nodes, and its units go on", timeout=PATIENCE_MS)
    expect(row.locator(".state")).to_have_class("state off")


def test_an_error_is_cut_and_a_path_in_it_is_no_link(shown: Tab, cluster: SomeCluster) -> None:
    path = "backup/card/7: is in its place"
    cluster.warnings = [
        f"1 copy has failed: payments/card/2 on node-1/0: {path}",
        f"2 copies have failed: payments/card/2 on node-1/0, payments/card/3 on node-2/0; the first: {path}",
        f"unit 0 of node-1 ended: {path}",
        "serves no data: /srv/data/7 cannot be read, as for payments/card/1",
    ]
    cluster.lately = [happening("copy_failed", f"payments/card/2 on node-1/0 failed: {path}")]
    cluster.tasks = [task(0, copy("node-1", "failed", failure="x" * 201))]
    shown.sees("ended: backup/card/7")
    assert shown.page.get_by_role("alert").get_by_role("link").all_inner_texts() == [
        *("payments/card/2", "payments/card/2", "payments/card/3", "payments/card/1")
    ]
    noted = shown.page.locator("section[data-key=lately]").get_by_role("link")
    expect(noted).to_have_text(["payments/card/2"])
    shown.sees(f"payments/card/0 failed: {'x' * 199}…")


def test_the_grid_of_copies(shown: Tab) -> None:
    assert states(shown, "payments/card/0") == [
        ["copy answering: answering unit 0"],
        ["copy silent: silent unit 1"],
        [],
    ]
    assert states(shown, "payments/card/1")[1] == ["copy behind: behind by 1,204 unit 0"]
    assert states(shown, "payments/card/2")[0] == ["copy behind far: behind by 48,000 unit 0"]
    assert states(shown, "payments/card/3")[1] == ["copy fetching: fetching 34 % unit 0"]
    assert states(shown, "payments/merchant/0")[0] == ["copy failed: failed unit 0"]
    assert states(shown, "payments/merchant/1")[1:] == [
        ["copy fetching: waits to fetch unit 0"],
        ["copy unknown: no report unit 0"],
    ]
    assert states(shown, "payments/merchant/2") == [
        ["copy silent leaving: silent unit 1, to go"],
        [],
        ["copy closed: closed unit 0"],
    ]


def test_copies_that_failed_or_fetch(shown: Tab) -> None:
    found = shown.cells("Copies that failed or fetch their data")
    assert found == [
        ["payments/merchant/0", "node-1/0", "failed", "", "", "no space left on device"],
        ["payments/card/3", "node-2/0", "fetching", "340 MB of 1.0 GB", "node-1/0", ""],
        ["payments/merchant/1", "node-2/0", "fetching", "waits for its turn", "", ""],
    ]


def test_tasks_are_found(shown: Tab, cluster: SomeCluster) -> None:
    shown.page.get_by_label("only with something wrong").check()
    shown.sees("7 of 8")
    shown.page.get_by_label("Find").fill("CARD/")
    shown.sees("4 of 8")
    # The copies of the first are well, and a warning names it all the same.
    assert [row[0] for row in shown.cells("Copies of tasks")] == [
        "payments/card/0 node-3 has lost its copy",
        *(f"payments/card/{each}" for each in (1, 2, 3)),
    ]
    # What was typed stays while the cluster changes.
    cluster.tasks = [task(each, copy("node-1", "answering")) for each in range(400)]
    shown.page.get_by_label("only with something wrong").uncheck()
    shown.sees("400 of 400")
    assert shown.page.get_by_label("Find").input_value() == "CARD/"
    expect(shown.page.get_by_label("only with something wrong")).to_be_focused()
    expect(shown.rows("Copies of tasks")).to_have_count(300)
    shown.sees("The first 300 are shown")
    shown.misses("Copies that failed")


def test_a_task_that_a_warning_names_is_found_by_its_link(shown: Tab) -> None:
    alert = shown.page.get_by_role("alert")
    alert.get_by_role("link", name="payments/merchant/1").click()
    shown.sees("1 of 8")
    expect(shown.page.get_by_label("Find")).to_have_value("payments/merchant/1")
    expect(shown.page.get_by_label("Find")).to_be_focused()
    assert [row[0] for row in shown.cells("Copies of tasks")] == ["payments/merchant/1"]
    shown.page.get_by_label("Find").fill("merchant/2")
    shown.sees("1 of 8")
    # Of what follows the page's name in an address nothing but text is made.
    shown.open("cluster/%3Cimg%20src=x%3E")
    shown.sees("0 of 8")


def test_what_has_happened_lately(shown: Tab, cluster: SomeCluster) -> None:
    section = shown.page.locator("section[data-key=lately]")
    expect(section.locator("p")).to_contain_text(
        re.compile("Noted by this front-end since 2023-11-14 .*; last look 2023-11-14 ")
    )
    assert [row[1] for row in shown.cells("Lately")] == [
        "1 copy was made on node-1: payments/card/2",
        "payments/card/2 on node-3/0 failed: TaskFolderError: a file is in its place",
        "node-3 was lost: it fell silent without closing its copies; node-1 took over 2 tasks",
    ]
    assert all(row[0].startswith("2023-11-14 ") for row in shown.cells("Lately"))
    expect(section.get_by_role("link", name="payments/card/2").first).to_have_attribute(
        "href", "#/cluster/payments%2Fcard%2F2"
    )
    cluster.lately = [happening("node_back", f"node-{number} is back", number) for number in range(100)]
    shown.sees("90 entries before that")
    assert len(shown.cells("Lately")) == 10
    section.locator("summary").click()
    shown.sees("node-99 is back")
    cluster.lately = []
    shown.sees("Nothing has happened that this front-end noted since 2023-11-14")
    expect(section.locator("table")).to_have_count(0)
    cluster.looks = False
    shown.sees(re.compile("Not looked since 2023-11-14 .*: what has happened after that is not known"))
    shown.misses("Nothing has happened")


def test_a_node_is_drained_and_used_again(shown: Tab, cluster: SomeCluster) -> None:
    page = shown.page
    page.get_by_role("button", name="drain node-2").click()
    shown.sees("Drain node-2?", "dialog")
    shown.sees("4 copies would be made on other nodes, about 4.0 GB", "dialog")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    assert cluster.orders == []

    cluster.refused, cluster.order_s = f"1 node would be left {HOSTILE}", 3.5
    page.get_by_role("button", name="drain node-2").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain node-2").click()
    shown.sees(re.compile("waiting until the leading node has decided: [123] s"), "dialog")
    shown.sees("1 node would be left <img src=x", "dialog")
    page.get_by_label("Let tasks have fewer copies").check()
    cluster.refused, cluster.order_s = "", 0.0
    page.get_by_role("dialog").get_by_role("button", name="Drain node-2").click()
    expect(page.locator("dialog")).to_have_count(0)
    shown.sees("draining")
    assert cluster.orders == [("drain", "node-2", False), ("drain", "node-2", True)]

    page.get_by_role("button", name="undrain node-2").click()
    shown.sees("Use node-2 again?", "dialog")
    page.get_by_role("button", name="Undrain node-2").last.click()
    shown.misses("draining")
    assert cluster.orders[2:] == [("undrain", "node-2", False)]


def test_an_order_whose_answer_is_lost(shown: Tab) -> None:
    shown.page.route("**/drain", lambda route: route.abort())
    shown.page.get_by_role("button", name="drain node-1").click()
    shown.page.get_by_role("dialog").get_by_role("button", name="Drain node-1").click()
    shown.sees("the order may stand", "dialog")
    shown.wrong.clear()


def test_who_may_not_order_sees_no_button(browser: Browser, running: Server) -> None:
    with tab(browser, running.service.url) as made:
        made.open("cluster")
        made.give(secret("metrics"))
        made.sees("node-1.example.com")
        made.sees("To drain and undrain nodes a token needs the scope operate.")
        assert made.page.get_by_role("button", name=re.compile("rain")).count() == 0


def test_hostile_texts_are_shown_as_text(shown: Tab, cluster: SomeCluster) -> None:
    cluster.warnings = [HOSTILE, "x" * 2_000]
    cluster.lately = [happening(HOSTILE, HOSTILE), happening("unit_ended", "w" * 1_000_000)]
    cluster.nodes = [node(HOSTILE, host=HOSTILE, rack="y" * 500, release=HOSTILE, state=HOSTILE)]
    cluster.nodes[0]["ended"] = [{**ENDED, "error": HOSTILE}]
    cluster.tasks = [
        task(0, copy(HOSTILE, "failed", failure=HOSTILE), copy("z" * 300, HOSTILE)),
        task(1, copy(HOSTILE, "failed", failure="word " * 200_000)),
        task(2, copy(HOSTILE, "failed", failure="w" * 1_000_000)),
    ]
    shown.page.reload()
    shown.sees("Copies that failed")
    shown.sees("characters more")
    shown.check_layout()
    text = shown.page.inner_text("main")
    assert "<img src=x onerror" in text
    assert "\\u202egnp.exe\\u0000</code>&amp;" in text
    assert not {"\u202e", "\0", "\u2028"} & set(text)
    assert shown.page.locator("main img, main script").count() == 0
    shown.page.get_by_role("button", name=re.compile("drain")).first.click()
    shown.sees("Drain <img", "dialog")
    shown.check_layout()
    assert shown.page.evaluate("typeof window.ran") == "undefined"


def test_progress_is_shown_where_an_answer_takes_long(shown: Tab, cluster: SomeCluster) -> None:
    cluster.overview_s = 2.5
    shown.sees(re.compile("waiting for an answer: [12] s"))
    cluster.overview_s = 0.0
    shown.misses("waiting for an answer")
    expect(shown.page.locator(".standing progress")).to_have_count(0, timeout=PATIENCE_MS)


def test_nothing_grows_while_somebody_looks(shown: Tab, cluster: SomeCluster) -> None:
    """The same elements, however often the cluster changes."""
    count = "document.querySelectorAll('*').length"
    before = shown.page.evaluate(count)
    for state in ("silent", "answering") * 2:
        cluster.tasks[0]["copies"][0]["state"] = state
        asked = len(shown.requests)
        shown.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        until(lambda asked=asked: shown.page.wait_for_timeout(50) or len(shown.requests) > asked)
        shown.page.wait_for_timeout(200)
        assert f"copy {state}: {state} unit 0" in states(shown, "payments/card/0")[0]
    assert shown.page.evaluate(count) == before
