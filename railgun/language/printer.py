"""Prints syntax trees as canonical text. Parsing that text gives an equal tree."""

from railgun.language import ast
from railgun.language.duration import format_duration_words

# Words that name a field only in quotes, because the grammar reads them as keywords where an operand stands.
RESERVED = frozenset({"case", "distinct", "false", "not", "null", "true", "when"})

_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _UNARY = range(1, 8)
_SUMS = (
    ast.ArithmeticOperator.ADD,
    ast.ArithmeticOperator.SUBTRACT,
    ast.ArithmeticOperator.CONCATENATE,
)


def print_query(query: ast.Query) -> str:
    """The canonical text of a query: one line, keywords in capitals, the fewest parentheses."""
    items = ", ".join(_item(item) for item in query.items)
    return f"SELECT {items} {print_clauses(query)}"


def print_clauses(query: ast.Query) -> str:
    """The clauses behind the select items of a query, from FROM on."""
    parts = [f"FROM {print_name(query.stream.name)}"]
    if query.where is not None:
        parts.append(f"WHERE {print_expression(query.where)}")
    if query.group_by:
        parts.append(f"GROUP BY {', '.join(print_name(name.name) for name in query.group_by)}")
    parts.append(f"OVER {print_window(query.window, excludes_current=query.excludes_current)}")
    return " ".join(parts)


def _item(item: ast.SelectItem) -> str:
    argument = "*" if item.argument is None else print_expression(item.argument)
    name = "" if item.name is None else f" AS {print_name(item.name)}"
    condition = "" if item.condition is None else f" FILTER (WHERE {print_expression(item.condition)})"
    return f"{item.aggregator}({argument}){condition}{name}"


def print_window(window: ast.Window, *, excludes_current: bool = False) -> str:
    """`SLIDING 7 DAYS DELAYED BY 1 HOUR EXCLUDE CURRENT`"""
    size = "" if window.size_ms is None else f" {format_duration_words(window.size_ms)}"
    delay = f" DELAYED BY {format_duration_words(window.delay_ms)}" if window.delay_ms else ""
    exclusion = " EXCLUDE CURRENT" if excludes_current else ""
    return f"{window.kind.upper()}{size}{delay}{exclusion}"


def print_name(name: str) -> str:
    """A name as a query has to write it: in double quotes where it would be read as a keyword."""
    plain = name.isascii() and name.isidentifier()
    return name if plain and name.lower() not in RESERVED else '"' + name.replace('"', '""') + '"'


def print_string(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("'", "''") + "'"


def print_expression(expression: ast.Expression) -> str:
    """The canonical text of one expression."""
    return _print(expression)[0]


def _at(expression: ast.Expression, level: int) -> str:
    text, own = _print(expression)
    return text if own >= level else f"({text})"


def _print(expression: ast.Expression) -> tuple[str, int]:
    """The text of an expression, and how tightly its operator binds."""
    match expression:
        case ast.Or(operands):
            return " OR ".join(_at(operand, _AND) for operand in operands), _OR
        case ast.And(operands):
            return " AND ".join(_at(operand, _NOT) for operand in operands), _AND
        case ast.Not(ast.Between() | ast.InList() | ast.Like() | ast.IsNull() as operand):
            return _predicate(operand, "NOT "), _PREDICATE
        case ast.Not(operand):
            return f"NOT {_at(operand, _NOT)}", _NOT
        case ast.Comparison(operator, left, right):
            return f"{_at(left, _SUM)} {operator} {_at(right, _SUM)}", _PREDICATE
        case ast.Between() | ast.InList() | ast.Like() | ast.IsNull():
            return _predicate(expression, ""), _PREDICATE
        case ast.Arithmetic(operator, left, right):
            level = _SUM if operator in _SUMS else _PRODUCT
            return f"{_at(left, level)} {operator} {_at(right, level + 1)}", level
        case ast.Negation(operand):
            return f"-{_print_signed(operand)}", _UNARY
        case _:
            return _print_atom(expression), _UNARY + 1


def _print_signed(operand: ast.Expression) -> str:
    """The operand of a minus. A bare number is put in parentheses, or the minus would become its sign; two signs are
    kept apart.
    """
    text = _at(operand, _UNARY)
    if isinstance(operand, ast.LongLiteral | ast.DecimalLiteral | ast.DoubleLiteral):
        return f"({text})"
    return f" {text}" if text.startswith("-") else text


def _predicate(expression: ast.Expression, negation: str) -> str:
    match expression:
        case ast.Between(operand, low, high):
            return f"{_at(operand, _SUM)} {negation}BETWEEN {_at(low, _SUM)} AND {_at(high, _SUM)}"
        case ast.InList(operand, items):
            return f"{_at(operand, _SUM)} {negation}IN ({', '.join(map(print_expression, items))})"
        case ast.Like(operand, pattern):
            return f"{_at(operand, _SUM)} {negation}LIKE {print_string(pattern)}"
        case ast.IsNull(operand):
            return f"{_at(operand, _SUM)} IS {negation}NULL"
        case _:
            raise TypeError(f"no predicate: {expression!r}")


def _print_atom(expression: ast.Expression) -> str:
    match expression:
        case ast.FieldReference(name):
            return print_name(name)
        case ast.NullLiteral():
            return "NULL"
        case ast.BooleanLiteral(value):
            return "TRUE" if value else "FALSE"
        case ast.StringLiteral(value):
            return print_string(value)
        case ast.LongLiteral(value):
            return str(value)
        case ast.DecimalLiteral(unscaled, scale):
            digits = str(abs(unscaled)).rjust(scale + 1, "0")
            point = len(digits) - scale
            return f"{'-' if unscaled < 0 else ''}{digits[:point]}.{digits[point:]}"
        case ast.DoubleLiteral(value):
            text = repr(value)
            return text if "e" in text else f"{text}e0"
        case ast.Call(function, (operand,), str(zone)):
            return f"{function.upper()}({_at(operand, _SUM)} IN {print_string(zone)})"
        case ast.Call(function, arguments):
            return f"{function.upper()}({', '.join(map(print_expression, arguments))})"
        case ast.Cast(operand, type_):
            return f"CAST({print_expression(operand)} AS {type_})"
        case ast.Case():
            return _print_case(expression)
        case _:
            raise TypeError(f"no expression: {expression!r}")


def _print_case(case: ast.Case) -> str:
    parts = ["CASE"]
    if case.operand is not None:
        parts.append(print_expression(case.operand))
    for when, then in case.branches:
        parts.append(f"WHEN {print_expression(when)} THEN {print_expression(then)}")
    if case.default is not None:
        parts.append(f"ELSE {print_expression(case.default)}")
    return " ".join([*parts, "END"])
