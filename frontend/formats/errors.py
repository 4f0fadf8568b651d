"""The errors of records whose values need a schema."""


class ValueUnreadableError(ValueError):
    """A record's value is not what its format and schema say, or its schema cannot be used. The message says why."""


class SchemaPendingError(Exception):
    """The schema of a record is being asked for. The record can be read later.

    why: what the last answer was; None if none has come yet.
    """

    def __init__(self, why: str | None = None) -> None:
        super().__init__(why)
        self.why = why


class UnknownSchemaError(ValueError):
    """No usable schema has this id. The message says why."""
