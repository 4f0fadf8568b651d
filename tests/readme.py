"""The blocks of commands and files in README.md, for tests that run them as they stand there."""

import re

from tests.forked import ROOT

_TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def block(beginning: str) -> str:
    """The indented block of the README whose first line begins so."""
    [found] = re.findall(
        rf"(?<=\n\n)    {re.escape(beginning)}.*\n(?:    .*\n|\n(?=    ))*", _TEXT, re.MULTILINE
    )
    return re.sub(r"^    ", "", found, flags=re.MULTILINE)
