"""One browser for all tests of a module, and servers for those that have none of their own."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from railgun.broker.held_ports import held_port, number_of
from tests.browser.chromium import chromium
from tests.frontend.access.callers import FOREIGN_STREAM, tokens
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, load_kernels, server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without tokens, with payments."""
    with server(tmp_path_factory.mktemp("opened") / "data") as found:
        found.define(PAYMENTS)
        load_kernels()
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with tokens and two streams."""
    with server(tmp_path_factory.mktemp("guarded") / "data", tokens=tokens()) as found:
        found.define(PAYMENTS + FOREIGN_STREAM)
        yield found


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which a server can be started again: nobody else is given it meanwhile."""
    with held_port() as held:
        yield number_of(held)
