"""What the console says to who begins, copied from it and run as it stands."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.console_tab import PATIENCE_MS, Tab, tab
from tests.forked import ROOT
from tests.frontend.access.callers import secret, tokens
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.serving import Server, server

MISSING = "there is no kcat; install it (Debian: apt-get install kcat), and its lines are run"


@pytest.fixture(params=["open", "with tokens"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    more = {"tokens": tokens()} if request.param == "with tokens" else {}
    with server(tmp_path / "data", **more) as found:
        yield found


def opened(shown: Tab, *, has_tokens: bool) -> None:
    shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.open()
    if has_tokens:
        shown.give(secret("all"))
    shown.sees("There is no stream yet")


def copied(shown: Tab, title: str) -> str:
    """The text behind a title, as its button copies it."""
    place = shown.page.locator(f"h2:text-is('{title}') ~ .copyable").first
    place.get_by_role("button").click()
    expect(place.get_by_role("button")).to_have_text("Copied")
    return str(shown.page.evaluate("navigator.clipboard.readText()"))


def run(*command: str, folder: Path, given: str | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAILGUN_TOKEN": secret("all")}
    # As whoever has installed the engine has it.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("first", ["curl", "Python"])
def test_the_ways_work_as_they_stand(browser: Browser, empty: Server, tmp_path: Path, first: str) -> None:
    with tab(browser, empty.service.url) as shown:
        opened(shown, has_tokens=bool(empty.service.application.guard.tokens))
        assert "railgun serve --broker" in copied(shown, "kcat")
        texts = {"curl": copied(shown, "curl"), "Python": copied(shown, "Python")}
        assert secret("all") not in "".join(texts.values())
        replies = {}
        for way in (first, *(texts.keys() - {first})):
            if way == "curl":
                replies[way] = run("bash", folder=tmp_path, given=texts[way]).splitlines()[-1]
            else:
                replies[way] = run(sys.executable, "-", folder=tmp_path, given=texts[way])
        assert json.loads(replies["curl"])["metrics"]["n_7d"] == (1 if first == "curl" else 2)
        assert "'sum_7d': 12.5" in replies["Python"] or first == "curl"
        # Whoever looks sees it come.
        expect(shown.page.get_by_role("link", name="payments")).to_be_visible(timeout=PATIENCE_MS)


def test_scopes_that_are_lacking_are_named(browser: Browser, tmp_path: Path) -> None:
    with server(tmp_path / "data", tokens=tokens()) as running, tab(browser, running.service.url) as shown:
        shown.open()
        shown.give(secret("define-own"))
        shown.sees("This token lacks score:payments, which is needed.")
        shown.sees("the address of the broker, which kcat needs")
        shown.sees("lacks the scope metrics")


def test_kcat_works_as_it_stands(browser: Browser, kafka: str, tmp_path: Path) -> None:
    if shutil.which("kcat") is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with LocalCluster(kafka, tmp_path) as cluster:
        url = cluster.serve().service.url
        cluster.start_units(1)
        with tab(browser, url) as shown:
            opened(shown, has_tokens=False)
            shown.sees("kcat -P")
            said = run("bash", folder=tmp_path, given=copied(shown, "kcat")).splitlines()
            assert json.loads(said[-1])["metrics"] == {"n_7d": 1, "sum_7d": 12.5}
