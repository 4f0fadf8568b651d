"""What a run says of its tests: a failure when it happens, an error of a worker itself when the run ends.

The reports of workers are texts in UTF-8. One that has half of a pair of surrogates, in what a test logged or in what
it compared, would end its worker and, with that, the run.
"""

from typing import Any

import pytest


class Teller:
    """A plugin of the run itself. A failure is told at once, as a run may be ended before its summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager
        self._internal_error = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._tell("_", report.nodeid, report.longreprtext)

    def pytest_internalerror(self, excrepr: object) -> None:
        self._internal_error = self._internal_error or str(excrepr)

    def pytest_unconfigure(self) -> None:
        """The first error is the cause. Those that it leads to stand between it and the end of what is printed."""
        if self._internal_error:
            self._tell("=", "the first internal error", self._internal_error)

    def _tell(self, line: str, title: str, text: str) -> None:
        terminal = self._plugins.getplugin("terminalreporter")
        terminal.ensure_newline()
        terminal.write_sep(line, title)
        terminal.write_line(text)


def encodable(report: Any) -> Any:
    """Return a report as a worker sends it, with lone surrogates as escapes."""
    match report:
        case str():
            return report.encode(errors="backslashreplace").decode()
        case dict():
            return {encodable(key): encodable(value) for key, value in report.items()}
        case list() | tuple():
            return type(report)(map(encodable, report))
    return report
