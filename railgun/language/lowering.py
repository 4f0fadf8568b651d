"""Lowers typed expressions to operations over values. Equal operations and equal constants become one."""

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from railgun.language.kernels import layout
from railgun.language.typed import Apply, Constant, Field, InZone, Operation, TypedExpression
from railgun.language.types import DOUBLE, LONG, Kind, Type

_WORD_MASK = (1 << 64) - 1
_LONG_RANGE = range(-(1 << 63), 1 << 63)
_OUTCOMES = {
    Operation.EQUAL: layout.IS_EQUAL,
    Operation.UNEQUAL: layout.IS_LESS | layout.IS_GREATER,
    Operation.LESS: layout.IS_LESS,
    Operation.LESS_EQUAL: layout.IS_LESS | layout.IS_EQUAL,
    Operation.GREATER: layout.IS_GREATER,
    Operation.GREATER_EQUAL: layout.IS_GREATER | layout.IS_EQUAL,
}
_LONG_CODES = {
    Operation.ADD: layout.LONG_ADD,
    Operation.SUBTRACT: layout.LONG_SUBTRACT,
    Operation.MULTIPLY: layout.LONG_MULTIPLY,
    Operation.REMAINDER: layout.LONG_REMAINDER,
    Operation.NEGATE: layout.LONG_NEGATE,
    Operation.ABS: layout.LONG_ABS,
}
_DOUBLE_CODES = {
    Operation.ADD: layout.DOUBLE_ADD,
    Operation.SUBTRACT: layout.DOUBLE_SUBTRACT,
    Operation.MULTIPLY: layout.DOUBLE_MULTIPLY,
    Operation.DIVIDE: layout.DOUBLE_DIVIDE,
    Operation.REMAINDER: layout.DOUBLE_REMAINDER,
    Operation.NEGATE: layout.DOUBLE_NEGATE,
    Operation.ABS: layout.DOUBLE_ABS,
}
_DECIMAL_CODES = {
    Operation.ADD: layout.DECIMAL_ADD,
    Operation.SUBTRACT: layout.DECIMAL_SUBTRACT,
    Operation.MULTIPLY: layout.DECIMAL_MULTIPLY,
    Operation.REMAINDER: layout.DECIMAL_REMAINDER,
    # A change of sign cannot overflow 18 digits.
    Operation.NEGATE: layout.LONG_NEGATE,
    Operation.ABS: layout.LONG_ABS,
}
_STRING_CODES = {
    Operation.LOWER: layout.LOWER,
    Operation.UPPER: layout.UPPER,
    Operation.LENGTH: layout.LENGTH,
    Operation.TRIM: layout.TRIM,
    Operation.CONCATENATE: layout.CONCATENATE,
}
_DOUBLE_WHOLE_CODES = {
    Operation.ROUND: layout.DOUBLE_ROUND,
    Operation.FLOOR: layout.DOUBLE_FLOOR,
    Operation.CEIL: layout.DOUBLE_CEIL,
}
_CALENDAR_CODES = {
    Operation.HOUR: layout.HOUR,
    Operation.MINUTE: layout.MINUTE,
    Operation.DAY_OF_WEEK: layout.DAY_OF_WEEK,
    Operation.DAY: layout.DAY,
    Operation.MONTH: layout.MONTH,
    Operation.YEAR: layout.YEAR,
}
_CHOICE_CODES = {Kind.DOUBLE: layout.CHOOSE_DOUBLE, Kind.STRING: layout.CHOOSE_STRING}
_CAST_CODES = {
    (Kind.DOUBLE, Kind.LONG): layout.DOUBLE_TO_LONG,
    (Kind.LONG, Kind.STRING): layout.LONG_TO_STRING,
    (Kind.STRING, Kind.LONG): layout.STRING_TO_LONG,
}


class Row(NamedTuple):
    """One operation: its code, its operands and its parameters."""

    code: int
    operands: tuple[int, ...]
    x: int = 0
    y: int = 0


class Lowering:
    """Collects operations.

    A value is a number: that of a column; −1 − the number of a constant; or the number of columns + that of a row.

    pool: lists of integers that rows refer to by place.  heap: the bytes of constant strings.
    """

    def __init__(self, columns: Sequence[tuple[str, Type]]) -> None:
        self.columns = {name: index for index, (name, _) in enumerate(columns)}
        self.rows: dict[Row, int] = {}
        self.constants: dict[tuple[int, bool], int] = {}
        self.pool: list[int] = []
        self.heap = bytearray()
        self._strings: dict[bytes, int] = {}
        self._places: dict[tuple[int, ...], int] = {}
        # By identity. The expression is kept alive, so that no other one can get its identity.
        self._lowered: dict[int, tuple[TypedExpression, int]] = {}

    def value(self, expression: TypedExpression) -> int:
        """The value of an expression. A tree that was lowered before has the value that it had then."""
        known = self._lowered.get(id(expression))
        if known is None:
            known = self._lowered[id(expression)] = (expression, self._value(expression))
        return known[1]

    def _value(self, expression: TypedExpression) -> int:
        match expression:
            case Field(name=name):
                return self.columns[name]
            case Constant():
                return self._constant(expression)
            case Apply(operation=Operation.CASE, arguments=arguments):
                return self._case(arguments)
            case Apply(operation=Operation.IN, arguments=arguments):
                return self._membership(arguments[0], arguments[1:])
            case Apply(operation=Operation.LIKE, arguments=(operand, Constant(value=str(pattern)))):
                items = like_items(pattern)
                return self._row(layout.LIKE, self.value(operand), x=self._place(items), y=len(items))
            case Apply(operation=Operation.IN_ZONE, arguments=(operand, InZone(zone=zone))):
                before_s, changes = zone.offsets
                moments = [1_000 * moment for moment, _ in changes]
                offsets = [1_000 * before_s, *(1_000 * offset_s for _, offset_s in changes)]
                place = self._place((*moments, *offsets))
                return self._row(layout.IN_ZONE, self.value(operand), x=place, y=len(moments))
            case Apply(operation=operation, arguments=(left, right)) if operation in _OUTCOMES:
                return self._comparison(left, right, _OUTCOMES[operation])
            case Apply(operation=Operation.NULLIF, type=type_, arguments=(left, right)):
                equal = self._comparison(left, right, layout.IS_EQUAL)
                null = self._constant(Constant(type_, None))
                return self._row(layout.SELECT, equal, null, self.value(left))
            case Apply():
                return self._simple(expression)
            case _:
                raise TypeError(f"no expression: {expression!r}")

    def _row(self, code: int, *operands: int, x: int = 0, y: int = 0) -> int:
        index = self.rows.setdefault(Row(code, operands, x, y), len(self.rows))
        return len(self.columns) + index

    # --- constants

    def _constant(self, constant: Constant) -> int:
        key = (self._word(constant), constant.value is None)
        return -1 - self.constants.setdefault(key, len(self.constants))

    def _word(self, constant: Constant) -> int:
        match constant.value:
            case None:
                return 0
            case str(text):
                return self._string(text.encode())
            case float(number):
                return double_word(number)
            case whole:
                return int(whole) & _WORD_MASK

    def _string(self, text: bytes) -> int:
        word = self._strings.get(text)
        if word is None:
            place = layout.CONSTANT << layout.HEAP_SHIFT | len(self.heap) << layout.OFFSET_SHIFT
            word = self._strings[text] = place | len(text)
            self.heap += text
        return word

    def _place(self, items: tuple[int, ...]) -> int:
        """The place of a list of items in the pool. Equal lists share one."""
        if items not in self._places:
            self._places[items] = len(self.pool)
            self.pool += items
        return self._places[items]

    # --- operations

    def _simple(self, expression: Apply) -> int:
        operation, type_ = expression.operation, expression.type
        values = [self.value(argument) for argument in expression.arguments]
        match operation:
            case Operation.AND | Operation.OR:
                code = layout.AND if operation is Operation.AND else layout.OR
                return self._chain(code, values)
            case Operation.COALESCE:
                return self._chain(layout.COALESCE, values)
            case Operation.NOT:
                return self._row(layout.NOT, *values)
            case Operation.IS_NULL:
                return self._row(layout.IS_NULL, *values)
            case _ if operation in _STRING_CODES:
                return self._row(_STRING_CODES[operation], *values)
            case _ if operation in _CALENDAR_CODES:
                return self._row(_CALENDAR_CODES[operation], *values)
            case Operation.SUBSTR:
                return self._row(layout.SUBSTR, *values, x=len(values) > 2)
            case Operation.GREATEST | Operation.LEAST:
                code = _CHOICE_CODES.get(type_.kind, layout.CHOOSE_LONG)
                return self._chain(code, values, x=1 if operation is Operation.GREATEST else -1)
            case Operation.SQRT:
                return self._row(layout.DOUBLE_SQRT, *values)
            case Operation.ROUND | Operation.FLOOR | Operation.CEIL:
                return self._whole(operation, type_, expression.arguments[0].type, values[0])
            case Operation.CAST:
                return self._cast(type_, expression.arguments[0].type, values[0])
            case Operation.TO_DOUBLE:
                scale = expression.arguments[0].type.scale
                if scale == 0:
                    return self._row(layout.LONG_TO_DOUBLE, *values)
                return self._row(layout.DECIMAL_TO_DOUBLE, *values, x=10**scale)
        if type_ == DOUBLE:
            return self._row(_DOUBLE_CODES[operation], *values)
        if type_.kind is not Kind.DECIMAL:
            return self._row(_LONG_CODES[operation], *values)
        if len(values) == 1 or operation is Operation.MULTIPLY:
            return self._row(_DECIMAL_CODES[operation], *values)
        x, y = (10 ** (type_.scale - argument.type.scale) for argument in expression.arguments)
        return self._row(_DECIMAL_CODES[operation], *values, x=x, y=y)

    def _chain(self, code: int, values: Sequence[int], x: int = 0) -> int:
        result = values[0]
        for value in values[1:]:
            result = self._row(code, result, value, x=x)
        return result

    def _whole(self, operation: Operation, type_: Type, of: Type, value: int) -> int:
        """ROUND, FLOOR or CEIL of a value of the type `of`."""
        if type_ == DOUBLE:
            return self._row(_DOUBLE_WHOLE_CODES[operation], value)
        if operation is Operation.ROUND:
            return self._rescaled(type_, of, value)
        code = layout.DECIMAL_FLOOR if operation is Operation.FLOOR else layout.DECIMAL_CEIL
        return self._row(code, value, x=10 ** (of.scale - type_.scale))

    def _cast(self, type_: Type, of: Type, value: int) -> int:
        """A cast. A timestamp, and a decimal of scale 0, has the word of the long, so that nothing is to be done."""
        if type_.kind is Kind.DECIMAL:
            return self._rescaled(type_, of, value)
        code = _CAST_CODES.get((of.kind, type_.kind))
        if code is not None:
            return self._row(code, value)
        return value if of.scale == 0 else self._row(layout.DECIMAL_TRUNCATE, value, x=10**of.scale)

    def _rescaled(self, type_: Type, of: Type, value: int) -> int:
        """A decimal at another scale and precision.

        x: the factor; if negative, its size is the divisor.  y: 10^precision, the bound.
        """
        gap = type_.scale - of.scale
        factor = 10**gap if gap >= 0 else -(10**-gap)
        return self._row(layout.DECIMAL_RESCALE, value, x=factor, y=10**type_.precision)

    def _case(self, arguments: Sequence[TypedExpression]) -> int:
        result = self.value(arguments[-1])
        for index in range(len(arguments) - 3, -1, -2):
            condition, chosen = self.value(arguments[index]), self.value(arguments[index + 1])
            result = self._row(layout.SELECT, condition, chosen, result)
        return result

    def _comparison(self, a: TypedExpression, b: TypedExpression, outcomes: int) -> int:
        # A constant takes the type of the other side, if that holds its value exactly.
        a, b = as_type(a, b.type) or a, as_type(b, a.type) or b
        kinds = (a.type.kind, b.type.kind)
        if kinds == (Kind.STRING, Kind.STRING):
            return self._row(layout.COMPARE_STRING, self.value(a), self.value(b), x=outcomes)
        if kinds == (Kind.DOUBLE, Kind.DOUBLE):
            return self._row(layout.COMPARE_DOUBLE, self.value(a), self.value(b), x=outcomes)
        if a.type.kind is Kind.DOUBLE:
            a, b, outcomes = b, a, _mirrored(outcomes)
        values = self.value(a), self.value(b)
        if b.type.kind is Kind.DOUBLE:
            return self._row(layout.COMPARE_DECIMAL_DOUBLE, *values, x=outcomes, y=10**a.type.scale)
        gap = b.type.scale - a.type.scale
        if gap == 0:
            return self._row(layout.COMPARE_LONG, *values, x=outcomes)
        # y > 0 scales the left side, y < 0 the right one.
        return self._row(layout.COMPARE_DECIMAL, *values, x=outcomes, y=10**gap if gap > 0 else -(10**-gap))

    def _membership(self, operand: TypedExpression, items: Sequence[TypedExpression]) -> int:
        """Whether a value is among items. Constants are looked up in a sorted list, other items compared one by one."""
        constants = [item for item in items if isinstance(item, Constant)]
        tests = [
            self._comparison(operand, item, layout.IS_EQUAL)
            for item in items
            if not isinstance(item, Constant)
        ]
        if constants:
            tests.append(self._listed(operand, constants))
        return self._chain(layout.OR, tests)

    def _listed(self, operand: TypedExpression, constants: Sequence[Constant]) -> int:
        """Whether a value is one of these constants. It never equals a constant that its type cannot hold."""
        with_null = any(item.value is None for item in constants)
        held = [found for item in constants if (found := as_type(item, operand.type)) is not None]
        if operand.type.kind is Kind.STRING:
            code = layout.IN_STRING
            words = [self._string(text) for text in sorted({str(item.value).encode() for item in held})]
        else:
            code = layout.IN_LONG
            words = sorted({_signed(self._word(item)) for item in held})
        place = self._place(tuple(map(_signed, words)))
        return self._row(code, self.value(operand), x=place, y=2 * len(words) + with_null)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 == 1 else word


def double_word(number: float) -> int:
    """The IEEE bits of a double."""
    return int(struct.unpack("<Q", struct.pack("<d", number))[0])


def as_type(expression: TypedExpression, type_: Type) -> Constant | None:
    """The constant of this type whose value is exactly that of the expression.

    None if the type has no such value, if the constant is NULL, or if the expression is not a constant.
    """
    if not isinstance(expression, Constant) or expression.value is None:
        return None
    if expression.type.kind is type_.kind and expression.type.scale == type_.scale:
        return expression
    if isinstance(expression.value, str | bool):
        return None
    exact = Fraction(expression.value) / 10**expression.type.scale
    if type_ == DOUBLE:
        rounded = float(exact)
        return Constant(type_, rounded) if Fraction(rounded) == exact else None
    if type_ != LONG and type_.kind is not Kind.DECIMAL:
        return None
    scaled = exact * 10**type_.scale
    if scaled.denominator != 1 or scaled.numerator not in _LONG_RANGE:
        return None
    return Constant(type_, scaled.numerator)


def like_items(pattern: str) -> tuple[int, ...]:
    """A LIKE pattern as the matcher reads it: bytes, ANY_ONE and ANY_RUN. Several `%` in a row become one ANY_RUN."""
    items: list[int] = []
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            if not items or items[-1] != layout.ANY_RUN:
                items.append(layout.ANY_RUN)
        elif character == "_":
            items.append(layout.ANY_ONE)
        else:
            items += (next(characters) if character == "\\" else character).encode()
    return tuple(items)


def _mirrored(outcomes: int) -> int:
    """The outcomes of the comparison with its sides exchanged."""
    less, greater = outcomes & layout.IS_LESS, outcomes & layout.IS_GREATER
    mirrored = (layout.IS_GREATER if less else 0) | (layout.IS_LESS if greater else 0)
    return mirrored | (outcomes & layout.IS_EQUAL)
