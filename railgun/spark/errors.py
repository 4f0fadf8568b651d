"""The errors of backfills, validations and tables by Spark. Each is one line with the place and the remedy."""


class SparkSideError(Exception):
    """Base of the errors of this package. They are raised before work starts if they can be known then."""


class SetupError(SparkSideError):
    """Java or Spark is missing, or its version is not supported."""


class OptionError(SparkSideError):
    """An option of the data source is unknown or missing, or has an impossible value."""


class PlaceError(SparkSideError):
    """The folder or broker lacks what was asked for, or does not answer."""


class ColumnError(SparkSideError):
    """A requested column is missing, or has another type."""


class RecordError(SparkSideError):
    """A record cannot be read as a row. The message has its partition and offset."""


class ReplyFileError(SparkSideError):
    """A file of recorded replies does not belong to the definitions or to the events."""


class HistoryError(SparkSideError):
    """History cannot be read, or cannot be put before a stream's log."""


class WorkTakenError(HistoryError):
    """Another job is building in the folder, perhaps by the same plan."""


class BackfillFailedError(SparkSideError):
    """Work on history broke off in a worker. Finished tasks are kept."""
