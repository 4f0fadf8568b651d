"""The grammar says one thing of each text: the parser generator settles no conflict by itself, in silence."""

import logging
import re
from importlib import resources

import pytest
from lark import Lark, logger
from lark.exceptions import GrammarError

_GRAMMAR = resources.files("railgun.language").joinpath("grammar.lark").read_text("utf-8")


def _conflicts(grammar: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    logger.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.DEBUG, logger.name):
            Lark(grammar, parser="lalr", maybe_placeholders=False, g_regex_flags=re.ASCII, debug=True)
    except GrammarError as error:
        return [str(error)]
    finally:
        logger.removeHandler(caplog.handler)
    return [each.getMessage() for each in caplog.records if "onflict" in each.getMessage()]


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    assert _conflicts(_GRAMMAR, caplog) == []


def test_a_conflict_would_be_seen(caplog: pytest.LogCaptureFixture) -> None:
    """An expression before IN, where it might itself go on with IN."""
    planted = _GRAMMAR.replace("NAME _OPEN sum _IN STRING _CLOSE", "NAME _OPEN expression _IN STRING _CLOSE")
    assert planted != _GRAMMAR
    assert _conflicts(planted, caplog)
