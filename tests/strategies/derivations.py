"""What is registered of a stream, and random DERIVE statements over its fields and metrics."""

from tests.oracle.definitions import Catalogue
from tests.oracle.derived import metric_type
from tests.oracle.errors import DefinitionRefused
from tests.oracle.query import parse_statement
from tests.oracle.syntax import Derived, Metric
from tests.oracle.types import DECIMAL_DIGITS, Type
from tests.strategies.expressions import ExpressionSource
from tests.strategies.queries import QuerySource


class DerivationSource:
    """Draws DERIVE statements. Keeps what is registered, in the oracle's catalogue."""

    def __init__(self, queries: QuerySource, catalogue: Catalogue) -> None:
        self.queries, self.catalogue = queries, catalogue

    def take(self, sql: str) -> None:
        """Note that what a statement makes is registered."""
        items = parse_statement(sql)
        for item in items:
            if isinstance(item, Metric):
                self.catalogue.metrics[item.name] = item
        derived = [item for item in items if isinstance(item, Derived)]
        if derived:
            self.catalogue.derive(derived)

    def droppable(self, names: list[str]) -> list[str]:
        """Those that no derived metric reads."""
        found = []
        for name in names:
            try:
                self.catalogue.copy().drop(name)
                found.append(name)
            except DefinitionRefused:
                pass
        return found

    def unread_fields(self) -> list[str]:
        """The computed fields that nothing reads."""
        found = []
        for name in self.catalogue.stream.computed:
            try:
                self.catalogue.check_no_reader(name)
                found.append(name)
            except DefinitionRefused:
                pass
        return found

    def draw(self, items_max: int = 3) -> tuple[str, list[str]]:
        """The text of a DERIVE, and the names of its metrics: over fields, metrics, and each other."""
        source, stream = self.queries.source, self.catalogue.stream
        readable: dict[str, Type] = {
            name: metric_type(metric, stream.types) for name, metric in self.catalogue.metrics.items()
        }
        readable |= {name: each.typed.type for name, each in self.catalogue.derived.items()}
        readable = {name: type_ for name, type_ in readable.items() if type_.scale <= DECIMAL_DIGITS}
        items, names = [], []
        for _ in range(source.integer(1, items_max)):
            # Fields seldom: there may be many of them.
            fields = dict(stream.types) if not readable or source.chance(50) else {}
            expressions = ExpressionSource(source, {**fields, **readable})
            drawn = expressions.draw(source.choice(expressions.kinds), source.integer(1, 3))
            name = f"m{self.queries.named}"
            self.queries.named += 1
            names.append(name)
            readable[name] = drawn.type
            items.insert(source.integer(0, len(items)), f"{drawn.text} AS {name}")
        return f"{source.choice(('DERIVE', 'derive'))} {', '.join(items)} FROM {stream.name}", names
