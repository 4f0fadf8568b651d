"""What can be wrong with a file of events or results: the file, the row if there is one, what to do."""


class FileError(Exception):
    """Base of every error of this package.

    file: as it was named.  row: counted from 1, a header not counted; None for the whole file.
    """

    def __init__(self, file: str, message: str, row: int | None = None) -> None:
        place = file if row is None else f"{file}, row {row}"
        super().__init__(f"{place}: {message}")
        self.file, self.row = file, row


class SuffixError(FileError):
    """The name's suffix names no format, or another one than the content has."""


class UnreadableFileError(FileError):
    """The content is not what the format says."""


class TruncatedFileError(UnreadableFileError):
    """The file ends before its content does."""


class EncodingError(UnreadableFileError):
    """Text that is not UTF-8."""


class ColumnError(FileError):
    """A column is missing, there twice, or holds what its field cannot be."""


class TooManyBadRowsError(UnreadableFileError):
    """So many rows in a row have the wrong shape that the file must be of another kind."""


class UnwritableFileError(FileError):
    """Results cannot be written where they were asked for."""
