"""Reads the records of value queries into the entity columns of a task's program.

Events have recorded fields, of which computed ones are computed. The key of a query says the values of either, and its
record has both (`StreamDefinition.of_queries`), by the version of the schema that its front-end knows.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from railgun.catalog.model import wire_type
from railgun.language.typed import Field
from railgun.language.types import Type
from railgun.plan.hot import HotPlan
from railgun.task.arrivals import Arrivals
from railgun.task.view import TaskView
from railgun.wire.decode import Decoded
from railgun.wire.records import Records
from railgun.wire.schema import Schema

_FORMER = "~"
"""What the name of a field begins with that now has another type. No name of a field begins so."""


class KeyReader:
    """Reads the keys of queries for one program. A new one is made when the program changes.

    columns: int64[hot, 2], as `Arrivals.columns` has them; only entity columns are set.
    """

    columns: npt.NDArray[np.int64]

    def __init__(self, task: TaskView) -> None:
        stream, program = task.stream, task.runtime.program
        assert stream is not None
        self._own: Arrivals | None = None
        self._arrivals = task.runtime.arrivals
        if not any(each.computed for each in task.schemas.values()):
            self.columns = self._arrivals.columns
            return
        types = stream.types
        names = sorted({name for layout in program.groups for name in layout.fields})
        plan = HotPlan([(name, types[name]) for name in names])
        self._places = [
            plan.entity(layout.fields, tuple(Field(types[name], name) for name in layout.fields))
            for layout in program.groups
        ]
        schemas = [_of_types(each.of_queries(version), types) for version, each in task.schemas.items()]
        self._own = Arrivals(schemas, plan, task.runtime.key)
        self._entity_columns = program.entity_columns
        self.columns = np.zeros((len(program.hot.columns), 2), np.int64)

    def read(self, records: Records) -> Decoded:
        """Decode records, and fill the entity columns."""
        if self._own is None:
            return self._arrivals.read(records)
        decoded = self._own.read(records)
        self.columns[self._entity_columns] = self._own.columns[self._places]
        return decoded


def _of_types(schema: Schema, types: Mapping[str, Type]) -> Schema:
    """Return a schema whose fields of other types than these are not read.

    A computed field was dropped, and another one has its name. A word of the one must not be read as one of the other.
    The metrics that group by it are newer than the query, so its front-end passes over their answers.
    """
    now = {name: wire_type(type_) for name, type_ in types.items()}
    return Schema(
        schema.version,
        tuple(
            each if now.get(each.name) == each.type else replace(each, name=_FORMER + each.name)
            for each in schema.fields
        ),
    )
