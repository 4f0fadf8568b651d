"""A test that outlives its limit ends: with its stacks told, and the run goes on without it.

pytest-timeout raises within the test. That is no help where the test hangs in native code, or in what it does to clean
up after the limit has struck. So a second clock, a thread of C, ends the process some time later. pytest-xdist then
says which test it was and starts another worker.
"""

import faulthandler
import os
from collections.abc import Generator

import pytest

# For what a test does to end its servers once its limit has struck, on a machine that is busy.
_GRACE_S = 90.0


class Watchdog:
    """A plugin; made while the standard error output can still be had, before a test captures it."""

    def __init__(self, config: pytest.Config) -> None:
        self._default_limit_s = float(config.getini("timeout"))
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            self._stderr = os.dup(2)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        mark = item.get_closest_marker("timeout")
        limit_s = float(mark.args[0]) if mark else self._default_limit_s
        faulthandler.dump_traceback_later(limit_s + _GRACE_S, exit=True, file=self._stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()
