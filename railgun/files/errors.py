"""The errors of files of events or results. Each names the file, the row if there is one, and what to do."""


class FileError(Exception):
    """Base of this package's errors.

    file: its name as it was given.
    row: the row, counted from 1 without a header; None if the error is about the whole file.
    """

    def __init__(self, file: str, message: str, row: int | None = None) -> None:
        place = file if row is None else f"{file}, row {row}"
        super().__init__(f"{place}: {message}")
        self.file, self.row = file, row


class SuffixError(FileError):
    """The name's suffix names no format, or not the format of the content."""


class UnreadableFileError(FileError):
    """The content is not of the format."""


class TruncatedFileError(UnreadableFileError):
    """The file ends before its content does."""


class EncodingError(UnreadableFileError):
    """A text is not UTF-8."""


class ColumnError(FileError):
    """A column is missing, occurs twice, or has values that its field cannot take."""


class TooManyBadRowsError(UnreadableFileError):
    """So many rows in succession have the wrong shape that the file must be of another kind."""


class UnwritableFileError(FileError):
    """Results cannot be written to this place."""
