"""What the oracle raises where the semantics refuse a definition, a query or an event."""


class OracleError(Exception):
    """Something the product must refuse; the message says what and why."""


class DefinitionRefused(OracleError):
    """A stream, field or setting that cannot be registered."""


class QueryRefused(OracleError):
    """A metric's text that does not parse, does not type, or has no home in its stream."""


class EventRefused(OracleError):
    """An event that the front-end turns away; it takes no offset in any log."""
