"""Makes derived metrics from DERIVE statements, and checks them against a stream and its metrics."""

from collections.abc import Container, Sequence
from typing import NamedTuple

from railgun.catalog.errors import CatalogError, DefinitionError, Location
from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import ANOTHER_NAME, check_is_not_id
from railgun.language.ast import Derivation, DerivedItem
from railgun.language.derive import Known, ResolvedDerived, resolve_derived
from railgun.language.errors import QueryError
from railgun.language.parser import parse_statement
from railgun.language.reading import CircleError, operands_first
from railgun.language.zones import Zones, pinned_zone


class Statement(NamedTuple):
    """A DERIVE statement and its place in a definition."""

    derivation: Derivation
    loc: Location


def define_derived(
    statements: Sequence[Statement], stream: StreamDefinition, known: Known, zones: Zones = pinned_zone
) -> list[ResolvedDerived]:
    """Returns the derived metrics of statements about one stream. Each comes after the ones that it reads.

    The order of the statements does not matter.
    known: the metrics that the stream already has.  zones: gives the time zone of a name.
    Raises DefinitionError with the place.
    """
    places: dict[str, tuple[DerivedItem, Statement]] = {}
    for statement in statements:
        for item in statement.derivation.items:
            _check_name(item, stream, places, statement)
            places[item.name] = item, statement
    try:
        order = operands_first({name: item for name, (item, _) in places.items()}, "derived metrics")
    except CircleError as error:
        derivation, loc = places[error.circle[0]][1]
        found = DefinitionError(loc, str(error), "take one of these names out of an expression")
        raise found.in_text(derivation.text, error.offset) from None
    grown, made = dict(known), []
    for name in order:
        item, (derivation, loc) = places[name]
        try:
            derived = resolve_derived(item, derivation, stream.readable, grown, stream.name, zones)
        except QueryError as error:
            raise DefinitionError(loc, str(error)) from error
        grown[name] = derived
        made.append(derived)
    return made


def _check_name(
    item: DerivedItem, stream: StreamDefinition, earlier: Container[str], statement: Statement
) -> None:
    """Raises DefinitionError if an item cannot have its name. earlier: the names of the items before it."""
    derivation, loc = statement
    try:
        check_is_not_id(item.name, stream.id, loc)
        if item.name in earlier:
            raise DefinitionError(loc, f"two metrics are named {item.name}", ANOTHER_NAME)
    except DefinitionError as error:
        raise error.in_text(derivation.text, item.name_position) from None


def derived_from_sql(sql: str, stream: StreamDefinition, known: Known, zones: Zones) -> ResolvedDerived:
    """Makes the derived metric of a change of the catalogue. Raises CatalogError."""
    try:
        statement = parse_statement(sql)
        if not isinstance(statement, Derivation) or len(statement.items) != 1:
            raise CatalogError(f"{stream.name}: {sql} is no DERIVE of one metric")
        (derived,) = define_derived([Statement(statement, ("sql",))], stream, known, zones)
    except (QueryError, DefinitionError) as error:
        raise CatalogError(f"{stream.name}: {error}") from error
    return derived
