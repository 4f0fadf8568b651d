"""Query text to syntax tree. The only error that comes out is QueryError."""

import dataclasses
import functools
import re
from importlib import resources

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from railgun.language.ast import Between, Case, Expression, LongLiteral, Node, Query, children
from railgun.language.builder import Builder
from railgun.language.errors import QueryError, position_of
from railgun.language.limits import DEPTH_LIMIT, SIZE_LIMIT, TEXT_LIMIT_BYTES
from railgun.language.literals import LONG_MAX, Misfit, too_big
from railgun.language.syntax_errors import unexpected_character, unexpected_token

_REMEMBERED, _REMEMBERED_CHARACTERS = 256, 1024
_PARENTHESES = re.compile(r"'[^']*'|\"[^\"]*\"|[()]")


@functools.cache
def _parser() -> Lark:
    grammar = resources.files("railgun.language").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar, parser="lalr", maybe_placeholders=False, g_regex_flags=re.ASCII, transformer=Builder()
    )


def parse_query(text: str) -> Query:
    """The syntax tree of one query; the same one for the same text, as long as it is remembered.

    Keywords are case-insensitive; names are not. Limits are those of `railgun.language.limits`.

    Raises QueryError, with the place, for text that is no query or exceeds a limit.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_CHARACTERS else _parsed(text)


def _parsed(text: str) -> Query:
    try:
        _check_text(text)
        query: Query = _parser().parse(text)  # type: ignore[assignment]
        _measured(query, 0)
    except Misfit as misfit:
        raise QueryError(misfit.message, position_of(text, misfit.offset), hint=misfit.hint) from None
    except UnexpectedToken as error:
        raise unexpected_token(text, error) from None
    except UnexpectedCharacters as error:
        raise unexpected_character(text, error) from None
    return dataclasses.replace(query, text=text)


# Every task of a stream reads the stream's metrics when it is opened.
_remembered = functools.lru_cache(_REMEMBERED)(_parsed)


def _check_text(text: str) -> None:
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        raise Misfit("a lone surrogate, which is no character", error.start) from None
    if size_bytes > TEXT_LIMIT_BYTES:
        raise Misfit(f"the text has {size_bytes} bytes; at most {TEXT_LIMIT_BYTES} are allowed", len(text))
    if text.count("(") > DEPTH_LIMIT:
        depth = 0
        for match in _PARENTHESES.finditer(text):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if depth > DEPTH_LIMIT:
                raise Misfit(f"parentheses nested deeper than {DEPTH_LIMIT}", match.start())


def _measured(node: Node, depth: int) -> int:
    """How many nodes the typed tree below a node has; refuses what is nested too deep.

    BETWEEN and a CASE with an operand say that operand once and test it several times, so that nesting
    them would multiply.
    """
    depth += isinstance(node, Expression)
    if depth > DEPTH_LIMIT:
        message = f"an expression deeper than {DEPTH_LIMIT}: each operator of a chain is one deeper"
        raise Misfit(message, node.position, hint="write a long chain in halves, as (a + b) + (c + d)")
    if isinstance(node, LongLiteral) and node.value > LONG_MAX:
        raise too_big(node.position)
    sizes = [_measured(child, depth) for child in children(node)]
    size = sum(sizes, 1)
    if isinstance(node, Between):
        size += sizes[0]
    elif isinstance(node, Case) and node.operand is not None:
        size += sizes[0] * len(node.branches)
    if size > SIZE_LIMIT:
        raise Misfit("an expression too large once written out", node.position)
    return size
