"""How what comes in becomes events of a stream: paths and units of fields, and the condition of records. It can change.

That is the stream's mapping. Records of an input topic from before a change are read by the mapping of then.
"""

from collections.abc import Mapping
from dataclasses import replace

from railgun.catalog.field_reading import field_text
from railgun.catalog.model import ALL, FieldDefinition, StreamDefinition
from railgun.language.typed import fields_of


def is_mapped_otherwise(old: StreamDefinition, new: StreamDefinition) -> bool:
    """Returns whether a changed definition has another mapping. Fields that are added are none."""
    if old.input.where != new.input.where:
        return True
    return any(
        (before.path, before.unit) != (after.path, after.unit)
        for before, after in zip(old.fields, new.fields)
    )


def mapped_as(stream: StreamDefinition, earlier: StreamDefinition) -> StreamDefinition:
    """Returns a stream with the mapping of an earlier definition. Fields that this lacks are where they are now."""
    known = {each.name: each for each in earlier.fields}
    fields = tuple(known.get(each.name, each) for each in stream.fields)
    return replace(stream, fields=fields, input=replace(stream.input, where=earlier.input.where))


def fixed_roles(stream: StreamDefinition) -> Mapping[str, str]:
    """Returns the fields whose path and unit cannot change, each with what it is, in words.

    A record that is delivered again would be another event, or go to another task, and count twice.
    """
    roles = dict[str, str]()
    computed = {each.name: each for each in stream.computed}
    for name in stream.partitioners:
        if name in computed:
            read = fields_of(computed[name].expression)
            roles |= dict.fromkeys(read, f"what the partitioner {name} reads")
    roles |= dict.fromkeys((each for each in stream.partitioners if each != ALL), "a partitioner")
    roles |= {
        name: what for name, what in ((stream.id, "the id"), (stream.time, "the time")) if name is not None
    }
    return roles


def fixed_place(registered: FieldDefinition, wanted: FieldDefinition, role: str) -> str:
    """Returns the error about a field that is to be found elsewhere, or in another unit, and may not be.

    role: what `fixed_roles` calls it.
    """
    return (
        f"from and unit of the field {registered.name} cannot be changed: it is {field_text(registered)}, not "
        f"{field_text(wanted)}; it is {role} of events, and a record that is delivered again would count twice; make "
        "another stream"
    )
