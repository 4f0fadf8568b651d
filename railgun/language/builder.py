"""Makes the syntax node of each rule of the grammar, or raises the error that says why there can be none."""

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeVar

from lark import Token, Transformer, v_args

from railgun.language import ast
from railgun.language.duration import LIMIT_MS, MS_BY_UNIT
from railgun.language.errors import OffsetError, nearest
from railgun.language.limits import GROUP_BY_LIMIT, IN_LIMIT, ITEMS_LIMIT, NAME_LIMIT
from railgun.language.literals import (
    decimal_literal,
    double_literal,
    like_pattern,
    long_literal,
    negative,
    unquote,
)
from railgun.language.types import Type, TypeTextError, parse_type

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_AGGREGATORS = {str(aggregator): aggregator for aggregator in ast.Aggregator} | {
    "stddev": ast.Aggregator.STDDEV_SAMP
}
_FUNCTIONS = {str(function): function for function in ast.Function}
_CAST = "cast"
_UTC = "UTC"


class _Arguments(NamedTuple):
    """The least and the most arguments of a function (None: any number), and what a call looks like."""

    least: int
    most: int | None
    example: str


# A function that is not listed takes one argument.
_ARGUMENTS = {
    ast.Function.COALESCE: _Arguments(1, None, "COALESCE(a, b)"),
    ast.Function.GREATEST: _Arguments(2, None, "GREATEST(a, b)"),
    ast.Function.LEAST: _Arguments(2, None, "LEAST(a, b)"),
    ast.Function.NULLIF: _Arguments(2, 2, "NULLIF(a, b)"),
    ast.Function.ROUND: _Arguments(1, 2, "ROUND(x) or ROUND(x, 2)"),
    ast.Function.SUBSTR: _Arguments(2, 3, "SUBSTR(s, 1) or SUBSTR(s, 1, 6)"),
}
_NUMBERS = ("no", "one", "two", "three")

# The nodes of optional parts of a statement. Rules that contain several of them distinguish them by these types.


class _Where(NamedTuple):
    """WHERE of a query."""

    condition: ast.Expression


class _Filter(NamedTuple):
    """FILTER of an item."""

    condition: ast.Expression


class _GroupBy(NamedTuple):
    """GROUP BY of a query."""

    fields: tuple[ast.FieldReference, ...]


class _Exclusion(NamedTuple):
    """EXCLUDE CURRENT of a query."""


class _Branch(NamedTuple):
    """WHEN and THEN of a CASE."""

    when: ast.Expression
    then: ast.Expression


class _Else(NamedTuple):
    """ELSE of a CASE."""

    value: ast.Expression


_Part = TypeVar("_Part")


def _part(parts: Sequence[object], kind: type[_Part]) -> _Part | None:
    """Return the part of a kind; None if it is not written. There is one at most."""
    return next((part for part in parts if isinstance(part, kind)), None)


def _start(token: Token) -> int:
    """Return the offset of a token in the text."""
    return token.start_pos or 0


def _not(operand: ast.Expression) -> ast.Not:
    return ast.Not(operand, position=operand.position)


def _in_list(operand: ast.Expression, items: tuple[ast.Expression, ...]) -> ast.InList:
    if len(items) > IN_LIMIT:
        hint = "write several IN joined by OR, or several NOT IN joined by AND"
        raise OffsetError(f"IN with more than {IN_LIMIT} items", items[IN_LIMIT].position, hint)
    return ast.InList(operand, items, position=operand.position)


def _aggregator(token: Token) -> ast.Aggregator:
    aggregator = _AGGREGATORS.get(token.lower())
    if aggregator is None:
        raise _unknown("aggregator", token, _AGGREGATORS)
    return aggregator


def _function(token: Token) -> ast.Function:
    function = _FUNCTIONS.get(token.lower())
    if function is None:
        if token.lower() in _AGGREGATORS:
            message = f"{token!s} is an aggregator: it cannot stand in an expression"
            raise OffsetError(message, _start(token), "a DERIVE reads a metric by its name")
        if token.lower() == _CAST:
            raise OffsetError("CAST names no type", _start(token), "write CAST(x AS long)")
        raise _unknown("function", token, (*_FUNCTIONS, _CAST))
    return function


def _check_arguments(function: ast.Function, arguments: tuple[ast.Expression, ...], start: int) -> None:
    """Raise OffsetError if a function cannot take so many arguments. start: the offset of its name."""
    one = _Arguments(1, 1, f"{function.upper()}(x)")
    least, most, example = _ARGUMENTS.get(function, one)
    if least <= len(arguments) and (most is None or len(arguments) <= most):
        return
    numbers = _NUMBERS[least] if most in (None, least) else f"{_NUMBERS[least]} or {_NUMBERS[most or least]}"
    noun = "argument" if least == most == 1 else "arguments"
    place = start if len(arguments) < least else arguments[most or least].position
    message = f"{function} takes {numbers} {noun}{'' if most else ' or more'}"
    raise OffsetError(message, place, f"as in {example}")


# Names of aggregators in other languages.
_OTHER_NAMES = {
    **dict.fromkeys(("mean", "average"), "avg"),
    **dict.fromkeys(("lag", "previous"), "prev"),
    **dict.fromkeys(("std", "stdev"), "stddev"),
    **dict.fromkeys(("var", "variance"), "var_samp"),
    **dict.fromkeys(("approx_count_distinct", "nunique", "uniq", "cardinality"), "count_distinct"),
}


def _unknown(what: str, token: Token, known: Collection[str]) -> OffsetError:
    """The error for an unknown name. It lists all known names, because the nearest one may not be meant."""
    other = _OTHER_NAMES.get(token.lower())
    near = other if other in known else nearest(str(token), known)
    listed = f"they are {', '.join(sorted(known))}"
    hint = f"did you mean {near}? {listed}" if near else listed
    return OffsetError(f"unknown {what} {str(token)[:80]!r}", _start(token), hint)


def _metric_name(name: ast.FieldReference) -> str:
    """Return a name as that of a metric. Raises OffsetError if no metric may have it."""
    if not _NAME.fullmatch(name.name) or len(name.name) > NAME_LIMIT:
        rule = f"a letter, then letters, digits and _, {NAME_LIMIT} at most"
        raise OffsetError(f"{name.name[:80]!r} cannot name a metric", name.position, f"a name is {rule}")
    return name.name


def _check_count(items: Sequence[ast.SelectItem | ast.DerivedItem]) -> None:
    if len(items) > ITEMS_LIMIT:
        hint = "write the others in a statement of their own"
        raise OffsetError(f"more than {ITEMS_LIMIT} items", items[ITEMS_LIMIT].position, hint)


@v_args(inline=True)
class Builder(Transformer[Token, Any]):
    """One method for each rule of the grammar. The parser calls them bottom up while it parses."""

    def start(self, statement: ast.Query | ast.Derivation) -> ast.Query | ast.Derivation:
        return statement

    def lone(self, expression: ast.Expression) -> ast.Expression:
        return expression

    def name(self, token: Token) -> ast.FieldReference:
        if token.type == "QUOTED":
            return ast.FieldReference(unquote(str(token)), quoted=True, position=_start(token))
        return ast.FieldReference(str(token), position=_start(token))

    field = v_args(inline=True)(lambda self, name: name)

    # --- expressions

    def any_of(self, *operands: ast.Expression) -> ast.Expression:
        return ast.flat(ast.Or, operands)

    def all_of(self, *operands: ast.Expression) -> ast.Expression:
        return ast.flat(ast.And, operands)

    def negated(self, token: Token, operand: ast.Expression) -> ast.Not:
        return ast.Not(operand, position=_start(token))

    def comparison(self, left: ast.Expression, token: Token, right: ast.Expression) -> ast.Comparison:
        operator = ast.ComparisonOperator("<>" if token == "!=" else str(token))
        return ast.Comparison(operator, left, right, position=left.position)

    def between(self, operand: ast.Expression, low: ast.Expression, high: ast.Expression) -> ast.Between:
        return ast.Between(operand, low, high, position=operand.position)

    def not_between(self, operand: ast.Expression, _: Token, *bounds: ast.Expression) -> ast.Not:
        return _not(ast.Between(operand, *bounds, position=operand.position))

    def in_list(self, operand: ast.Expression, *items: ast.Expression) -> ast.InList:
        return _in_list(operand, items)

    def not_in_list(self, operand: ast.Expression, _: Token, *items: ast.Expression) -> ast.Not:
        return _not(_in_list(operand, items))

    def like(self, operand: ast.Expression, pattern: Token) -> ast.Like:
        checked = like_pattern(unquote(str(pattern)), _start(pattern))
        return ast.Like(operand, checked, position=operand.position)

    def not_like(self, operand: ast.Expression, _: Token, pattern: Token) -> ast.Not:
        return _not(self.like(operand, pattern))

    def is_null(self, operand: ast.Expression) -> ast.IsNull:
        return ast.IsNull(operand, position=operand.position)

    def is_not_null(self, operand: ast.Expression, _: Token) -> ast.Not:
        return _not(ast.IsNull(operand, position=operand.position))

    def arithmetic(self, left: ast.Expression, token: Token, right: ast.Expression) -> ast.Arithmetic:
        return ast.Arithmetic(ast.ArithmeticOperator(str(token)), left, right, position=left.position)

    def minus(self, token: Token, operand: ast.Expression) -> ast.Expression:
        return ast.Negation(operand, position=_start(token))

    def negative(self, token: Token, number: ast.Expression) -> ast.Expression:
        return negative(number, _start(token))

    def long(self, token: Token) -> ast.LongLiteral:
        return long_literal(str(token), _start(token))

    def decimal(self, token: Token) -> ast.DecimalLiteral:
        return decimal_literal(str(token), _start(token))

    def double(self, token: Token) -> ast.DoubleLiteral:
        return double_literal(str(token), _start(token))

    def string(self, token: Token) -> ast.StringLiteral:
        return ast.StringLiteral(unquote(str(token)), position=_start(token))

    def true(self, token: Token) -> ast.BooleanLiteral:
        return ast.BooleanLiteral(True, position=_start(token))

    def false(self, token: Token) -> ast.BooleanLiteral:
        return ast.BooleanLiteral(False, position=_start(token))

    def null(self, token: Token) -> ast.NullLiteral:
        return ast.NullLiteral(position=_start(token))

    def call(self, token: Token, *arguments: ast.Expression) -> ast.Call:
        function = _function(token)
        _check_arguments(function, arguments, _start(token))
        return ast.Call(function, arguments, position=_start(token))

    def call_in_zone(self, token: Token, operand: ast.Expression, zone: Token) -> ast.Call:
        function = _function(token)
        if function not in ast.CALENDAR:
            names = ", ".join(sorted(each.upper() for each in ast.CALENDAR))
            raise OffsetError(f"{function} takes no time zone", _start(zone), f"those that do are {names}")
        name = unquote(str(zone))
        return ast.Call(
            function,
            (operand,),
            None if name == _UTC else name,
            position=_start(token),
            zone_position=_start(zone),
        )

    def cast(self, token: Token, operand: ast.Expression, type_: Type) -> ast.Cast:
        if token.lower() != _CAST:
            message = f"AS stands in CAST alone, not in {str(token)[:80]}"
            raise OffsetError(message, _start(token), "write CAST(x AS long)")
        return ast.Cast(operand, type_, position=_start(token))

    def type(self, name: Token, *digits: Token) -> Type:
        text = f"{name.lower()}({','.join(digits)})" if digits else name.lower()
        try:
            return parse_type(text)
        except TypeTextError as error:
            raise OffsetError(error.message, _start(name), error.hint) from None

    def branch(self, when: ast.Expression, then: ast.Expression) -> _Branch:
        return _Branch(when, then)

    def default(self, value: ast.Expression) -> _Else:
        return _Else(value)

    def case(self, token: Token, *parts: object) -> ast.Case:
        branches = tuple((part.when, part.then) for part in parts if isinstance(part, _Branch))
        otherwise = _part(parts, _Else)
        return ast.Case(
            _part(parts, ast.Expression),
            branches,
            None if otherwise is None else otherwise.value,
            position=_start(token),
        )

    # --- windows

    def duration(self, number: Token, unit: Token) -> int:
        digits = str(number).lstrip("0")
        if not digits:
            message = "a window's size and delay are at least 1 MILLISECOND"
            hint = "write a greater number; without a delay leave out DELAYED BY"
            raise OffsetError(message, _start(number), hint)
        unit_ms = MS_BY_UNIT[unit.upper().removesuffix("S")]
        if len(digits) > len(str(LIMIT_MS)) or int(digits) * unit_ms > LIMIT_MS:
            limit_days = LIMIT_MS // MS_BY_UNIT["DAY"]
            message = f"a window's size and delay are at most {limit_days} DAYS"
            raise OffsetError(message, _start(number), "OVER INFINITE takes everything so far")
        return int(digits) * unit_ms

    def delay(self, delay_ms: int) -> int:
        return delay_ms

    def sliding(self, token: Token, size_ms: int, delay_ms: int = 0) -> ast.Window:
        return ast.Window(ast.WindowKind.SLIDING, size_ms, delay_ms, position=_start(token))

    def tumbling(self, token: Token, size_ms: int, delay_ms: int = 0) -> ast.Window:
        return ast.Window(ast.WindowKind.TUMBLING, size_ms, delay_ms, position=_start(token))

    def infinite(self, token: Token, delay_ms: int = 0) -> ast.Window:
        return ast.Window(ast.WindowKind.INFINITE, None, delay_ms, position=_start(token))

    def exclusion(self) -> _Exclusion:
        return _Exclusion()

    # --- the query

    def select_item(self, token: Token, *parts: Any) -> ast.SelectItem:
        aggregator = _aggregator(token)
        argument, *options = parts
        if isinstance(argument, Token) and argument.type == "DISTINCT":
            if aggregator is not ast.Aggregator.COUNT:
                message = f"DISTINCT is for count alone, not {aggregator}"
                hint = f"write {aggregator}(x) or count(DISTINCT x)"
                raise OffsetError(message, _start(argument), hint)
            aggregator = ast.Aggregator.COUNT_DISTINCT
            argument, *options = options
        elif isinstance(argument, Token):
            if aggregator is not ast.Aggregator.COUNT:
                message = f"* is for count alone: {aggregator} wants an expression"
                raise OffsetError(message, _start(argument), f"write {aggregator}(x) or count(*)")
            argument = None
        only, name = _part(options, _Filter), _part(options, ast.FieldReference)
        return ast.SelectItem(
            aggregator,
            argument,
            None if name is None else _metric_name(name),
            None if only is None else only.condition,
            name_position=_start(token) if name is None else name.position,
            position=_start(token),
        )

    def where(self, condition: ast.Expression) -> _Where:
        return _Where(condition)

    def filter(self, condition: ast.Expression) -> _Filter:
        return _Filter(condition)

    def group_by(self, *names: ast.FieldReference) -> _GroupBy:
        if len(names) > GROUP_BY_LIMIT:
            message = f"GROUP BY with more than {GROUP_BY_LIMIT} fields"
            raise OffsetError(
                message, names[GROUP_BY_LIMIT].position, "leave out those that others determine"
            )
        return _GroupBy(names)

    def query(self, *parts: Any) -> ast.Query:
        items = tuple(part for part in parts if isinstance(part, ast.SelectItem))
        _check_count(items)
        stream: ast.FieldReference = parts[len(items)]
        where, group_by, window = _part(parts, _Where), _part(parts, _GroupBy), _part(parts, ast.Window)
        assert window is not None, "each query has a window"
        return ast.Query(
            items,
            ast.StreamName(stream.name, position=stream.position),
            None if where is None else where.condition,
            () if group_by is None else group_by.fields,
            window,
            excludes_current=_part(parts, _Exclusion) is not None,
        )

    # --- derived metrics

    def derived_item(self, expression: ast.Expression, name: ast.FieldReference) -> ast.DerivedItem:
        return ast.DerivedItem(
            expression, _metric_name(name), name_position=name.position, position=expression.position
        )

    def derivation(self, *parts: Any) -> ast.Derivation:
        *items, stream = parts
        _check_count(items)
        return ast.Derivation(tuple(items), ast.StreamName(stream.name, position=stream.position))
