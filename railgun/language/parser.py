"""Parses the text of a query, DERIVE or expression to its syntax tree. Every error is a QueryError with the place."""

import dataclasses
import functools
import re
from importlib import resources

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from railgun.language.ast import (
    Between,
    Case,
    Derivation,
    Expression,
    LongLiteral,
    Node,
    Query,
    all_of,
    children,
)
from railgun.language.builder import Builder
from railgun.language.errors import OffsetError, QueryError, position_of
from railgun.language.limits import DEPTH_LIMIT, SIZE_LIMIT, TEXT_LIMIT_BYTES
from railgun.language.literals import LONG_MAX, too_big
from railgun.language.syntax_errors import unexpected_character, unexpected_token

_TOO_LARGE_REMEDY = (
    "BETWEEN and CASE x WHEN repeat their first operand for each test: make that a shorter one"
)
_REMEMBERED, _REMEMBERED_CHARACTERS = 256, 1024
_STATEMENT, _LONE = "start", "lone"
_PARENTHESES = re.compile(r"'[^']*'|\"[^\"]*\"|[()]")


@functools.cache
def _parser() -> Lark:
    grammar = resources.files("railgun.language").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar,
        start=[_STATEMENT, _LONE],
        parser="lalr",
        maybe_placeholders=False,
        g_regex_flags=re.ASCII,
        transformer=Builder(),
    )


Statement = Query | Derivation


def parse_query(text: str) -> Query:
    """As `parse_statement`, but raises QueryError for a DERIVE too."""
    statement = parse_statement(text)
    if isinstance(statement, Derivation):
        raise QueryError("a DERIVE does not belong here", position_of(text, 0), ("SELECT",))
    return statement


def parse_statement(text: str) -> Statement:
    """The syntax tree of one query or DERIVE. Trees are cached by their text.

    Keywords are case-insensitive; names are not. Limits are those of `railgun.language.limits`.

    Raises QueryError, with the place, for text that is not a statement or exceeds a limit.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_CHARACTERS else _parsed(text)


def parse_expression(text: str) -> Expression:
    """The syntax tree of an expression that stands alone. Raises QueryError as `parse_statement` does."""
    expression = _read(text, _LONE)
    assert isinstance(expression, Expression)
    return expression


def _parsed(text: str) -> Statement:
    statement = _read(text, _STATEMENT)
    assert isinstance(statement, Statement)
    return dataclasses.replace(statement, text=text)


def _read(text: str, start: str) -> Node:
    try:
        _check_text(text)
        node: Node = _parser().parse(text, start)  # type: ignore[assignment]
        _measured(node, 0)
        if isinstance(node, Query):
            for item in node.items:
                both = all_of(node.where, item.condition)
                if both is not None and item.condition is not None:
                    _measured(both, 0)
        return node
    except OffsetError as error:
        raise error.in_text(text) from None
    except UnexpectedToken as error:
        raise unexpected_token(text, error) from None
    except UnexpectedCharacters as error:
        raise unexpected_character(text, error) from None


# Every task of a stream parses the stream's metrics when it is opened.
_remembered = functools.lru_cache(_REMEMBERED)(_parsed)


def _check_text(text: str) -> None:
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        raise OffsetError(
            "a lone surrogate, which is no character", error.start, "write the character itself"
        ) from None
    if size_bytes > TEXT_LIMIT_BYTES:
        message = f"the text has {size_bytes} bytes; at most {TEXT_LIMIT_BYTES} are allowed"
        raise OffsetError(message, len(text), "write its items as several queries")
    if text.count("(") > DEPTH_LIMIT:
        depth = 0
        for match in _PARENTHESES.finditer(text):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if depth > DEPTH_LIMIT:
                message = f"parentheses nested deeper than {DEPTH_LIMIT}"
                raise OffsetError(message, match.start(), "take out those that change nothing")


def _measured(node: Node, depth: int) -> int:
    """The number of nodes of the typed tree below a node. Raises OffsetError if it is nested too deep or too large.

    The typed trees of BETWEEN, and of CASE with an operand, repeat the operand for each test. Nested, they multiply.
    """
    depth += isinstance(node, Expression)
    if depth > DEPTH_LIMIT:
        message = f"an expression deeper than {DEPTH_LIMIT}: each operator of a chain is one deeper"
        raise OffsetError(message, node.position, "write a long chain in halves, as (a + b) + (c + d)")
    if isinstance(node, LongLiteral) and node.value > LONG_MAX:
        raise too_big(node.position)
    sizes = [_measured(child, depth) for child in children(node)]
    size = sum(sizes, 1)
    if isinstance(node, Between):
        size += sizes[0]
    elif isinstance(node, Case) and node.operand is not None:
        size += sizes[0] * len(node.branches)
    if size > SIZE_LIMIT:
        raise OffsetError("an expression too large once written out", node.position, _TOO_LARGE_REMEDY)
    return size
