"""Whole cases from a source of choices."""

from dataclasses import dataclass

from tests.oracle.definitions import Catalogue
from tests.oracle.types import Row, Type, parse_type
from tests.oracle.values import read_value
from tests.strategies import schemas
from tests.strategies.case import Case
from tests.strategies.derivations import DerivationSource
from tests.strategies.expressions import ExpressionSource
from tests.strategies.logs import History
from tests.strategies.queries import QuerySource
from tests.strategies.source import Source
from tests.strategies.values import row


@dataclass(frozen=True)
class Profile:
    """What a case may hold.

    `spread`: several partitioners and partitions; without it the stream is one task. `explicit_warm`: added
    metrics are left warming, and `warm` records stand somewhere later, or nowhere; without it they are warm
    at once. `control_percent`: how many of a hundred steps are changes. `queries_max`: queries at first.
    `derives`: derived metrics too, which front-ends compute. `asks_percent`: with these, how many of a hundred steps
    are value queries. `twins`: queries at first that differ from others in whether they exclude the current event.
    `computed_percent`: how many of a hundred streams have computed fields at first; with none, changes add none either.
    """

    spread: bool = True
    explicit_warm: bool = False
    control_percent: int = 6
    queries_max: int = 5
    derives: bool = False
    asks_percent: int = 0
    twins: bool = False
    computed_percent: int = 40


def draw_case(source: Source, size: int, profile: Profile) -> Case:
    """A case of `size` steps."""
    stream = schemas.stream(source, spread=profile.spread, computed_percent=profile.computed_percent)
    queries = QuerySource(source)
    texts: list[str] = []
    metrics: list[str] = []
    for _ in range(source.integer(1, profile.queries_max)):
        text, names = queries.query(stream)
        texts.append(text)
        metrics += names
    for _ in range(source.integer(1, 3) if profile.twins else 0):
        text, names = queries.twin(stream)
        texts.append(text)
        metrics += names
    registered = DerivationSource(queries, Catalogue(stream))
    for text in texts:
        registered.take(text)
    for _ in range(source.integer(0, 3) if profile.derives else 0):
        text, names = registered.draw()
        registered.take(text)
        texts.insert(source.integer(0, len(texts)), text)
        metrics += names
    history = History(
        source, queries, registered, metrics, profile.explicit_warm, profile.derives, profile.asks_percent,
        computes=profile.computed_percent > 0,
    )  # fmt: skip
    steps = tuple(history.step(profile.control_percent) for _ in range(size))
    cuts = draw_cuts(source, size)
    restarts = frozenset(cut for cut in cuts if source.chance(10))
    return Case(schemas.definitions(stream, texts), steps, cuts, restarts)


def draw_cuts(source: Source, size: int) -> tuple[int, ...]:
    """Places to cut a log of `size` records: one by one, in equal batches, in any, or nowhere."""
    longest = source.choice((size or 1, 1, 2, 7, 64))
    cuts = []
    place = 0
    even = source.chance(40)
    while place < size:
        place += longest if even else source.integer(1, longest)
        if place < size:
            cuts.append(place)
    return tuple(cuts)


@dataclass(frozen=True)
class ExpressionCase:
    """An expression over typed fields, and rows to evaluate it on, as JSON has them."""

    fields: dict[str, str]
    text: str
    type: Type
    rows: tuple[dict[str, object], ...]

    def typed_rows(self) -> list[Row]:
        """The rows as the oracle's evaluator takes them."""
        types = {name: parse_type(text) for name, text in self.fields.items()}
        return [{n: read_value(v, types[n], n) for n, v in values.items()} for values in self.rows]


def draw_expression(source: Source, depth: int, rows: int) -> ExpressionCase:
    """An expression of any type, at most about `depth` operators deep, and rows with nulls and extremes."""
    fields = {f"f{n}": parse_type(text) for n, text in enumerate(schemas.TYPES)}
    fields |= {f"g{n}": parse_type(text) for n, text in enumerate(schemas.TYPES[:4])}
    expressions = ExpressionSource(source, fields)
    drawn = expressions.draw(source.choice(expressions.kinds), depth)
    values = tuple(row(source, fields, 1_700_000_000_000) for _ in range(rows))
    return ExpressionCase({n: str(t) for n, t in fields.items()}, drawn.text, drawn.type, values)
