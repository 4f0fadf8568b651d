"""Random metric queries over a stream: every aggregator, window, filter, and grouping with a home there."""

from tests.oracle.definitions import ALL, Stream
from tests.oracle.types import Type
from tests.strategies.expressions import ExpressionSource
from tests.strategies.source import Source

NUMERIC_ONLY = ("sum", "avg", "stddev", "stddev_samp", "stddev_pop", "var_samp", "var_pop")
ANY_TYPE = ("count", "min", "max", "first", "last", "prev", "count_distinct", "DISTINCT")

# Few, so that windows share edges: a size of one is the delay of another.
DURATIONS = (
    *("1 SECOND", "10 MILLISECONDS", "5 SECONDS", "1 MINUTE", "1 HOUR", "3 MILLISECONDS", "1 MILLISECOND"),
    *("5 MINUTES", "1 DAY", "1 week", "10 seconds"),
)


def window(source: Source) -> str:
    """The text of a window after OVER."""
    kind = source.choice(("SLIDING", "SLIDING", "SLIDING", "TUMBLING", "INFINITE", "sliding"))
    size = "" if kind == "INFINITE" else f" {source.choice(DURATIONS)}"
    delay = f" DELAYED BY {source.choice(DURATIONS)}" if source.chance(25) else ""
    exclusion = source.choice((" EXCLUDE CURRENT", " exclude current")) if source.chance(25) else ""
    return f"{kind}{size}{delay}{exclusion}"


def group_by(source: Source, stream: Stream) -> list[str]:
    """No field to two (three where a home wants one more), a partitioner among them where `*` is none."""
    names = [name for name in (*stream.types, *stream.computed) if name != "id"]
    chosen = [source.choice(names) for _ in range(source.choice((1, 1, 0, 2)))]
    keyed = [name for name in stream.partitioners if name != ALL]
    homeless = ALL not in stream.partitioners and not set(keyed) & set(chosen)
    if keyed and (homeless or source.chance(50)):
        chosen.insert(source.integer(0, len(chosen)), source.choice(keyed))
    return list(dict.fromkeys(chosen))


class QuerySource:
    """Draws queries, each metric under a name that no other has had."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.named = 0
        # Of each query WHERE and GROUP BY, and its window.
        self._tails: list[tuple[str, str]] = []

    def query(self, stream: Stream, items_max: int = 4) -> tuple[str, list[str]]:
        """A query's text and the names of its metrics."""
        expressions = ExpressionSource(self.source, stream.types)
        items, names = [], []
        for _ in range(self.source.integer(1, items_max)):
            names.append(f"m{self.named}")
            self.named += 1
            condition = ""
            if self.source.chance(15):
                predicate = expressions.draw("boolean", self.source.integer(1, 2)).text
                condition = f" {self.source.choice(('FILTER', 'filter'))} (WHERE {predicate})"
            items.append(f"{self.item(expressions)}{condition} AS {names[-1]}")
        where = ""
        if self.source.chance(40):
            where = f" WHERE {expressions.draw('boolean', self.source.integer(1, 3)).text}"
        grouped = group_by(self.source, stream)
        by = f" GROUP BY {', '.join(grouped)}" if grouped else ""
        self._tails.append((where + by, window(self.source)))
        return f"SELECT {', '.join(items)} FROM {stream.name}{where}{by} OVER {self._tails[-1][1]}", names

    def twin(self, stream: Stream) -> tuple[str, list[str]]:
        """A query over window, filter and group of one that was drawn; of the two, one excludes the current event."""
        tail, over = self.source.choice(self._tails)
        plain = over.removesuffix(" EXCLUDE CURRENT").removesuffix(" exclude current")
        exclusion = " EXCLUDE CURRENT" if plain == over else ""
        self.named += 1
        name, expressions = f"m{self.named - 1}", ExpressionSource(self.source, stream.types)
        return (
            f"SELECT {self.item(expressions)} AS {name} FROM {stream.name}{tail} OVER {plain}{exclusion}",
            [name],
        )

    def item(self, expressions: ExpressionSource) -> str:
        """An aggregator and its argument: mostly a field, sometimes an expression."""
        if self.source.chance(12):
            return "count(*)"
        numeric = self.source.chance(55)
        aggregator = self.source.choice(NUMERIC_ONLY if numeric else ANY_TYPE)
        kinds = [k for k in expressions.kinds if not numeric or Type(k).numeric]
        kind = self.source.choice(kinds)
        depth = self.source.integer(1, 3) if self.source.chance(30) else 0
        argument = expressions.draw(kind, depth).text
        if aggregator == "DISTINCT":
            return f"count(DISTINCT {argument})"
        return f"{self.source.choice((aggregator, aggregator.upper()))}({argument})"
