"""What can go wrong on the Spark side: each error is one line with the place and the remedy."""


class SparkSideError(Exception):
    """Base of this package's errors. Raised before work starts wherever it can be known then."""


class SetupError(SparkSideError):
    """Java or Spark is missing, or of a version that does not do."""


class OptionError(SparkSideError):
    """An option of the data source is unknown, missing or of a value that cannot be."""


class PlaceError(SparkSideError):
    """The folder or broker does not hold what was asked for, or does not answer."""


class ColumnError(SparkSideError):
    """A column was asked for that is not there, or has another type."""


class RecordError(SparkSideError):
    """A record that cannot be given as a row, with its partition and offset."""


class ReplyFileError(SparkSideError):
    """A file of recorded replies that does not belong to the definitions or to the events."""


class HistoryError(SparkSideError):
    """History that cannot be read, or not be put before a stream's log."""


class WorkTakenError(HistoryError):
    """Another job builds in the folder, maybe of the same plan."""


class BackfillFailedError(SparkSideError):
    """Work on history that broke off in a worker; what was finished is kept."""
