"""What whoever follows the catalogue is told."""

from collections.abc import Mapping
from dataclasses import dataclass

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The catalogue at one moment. Not to be changed.

    catalog: what is done: all tasks were told.  keys: the streams' 16 secret bytes, by name.  pending: what began
    and is not done.
    """

    catalog: Catalog
    keys: Mapping[str, bytes]
    pending: tuple[Change, ...]
