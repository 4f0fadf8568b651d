"""The contract of a reader of one file, whatever its format."""

from collections.abc import Iterator
from typing import Protocol

from railgun.files.block import Block


class Source(Protocol):
    """One file, opened and its columns checked. Raises FileError where it cannot be read on, OSError."""

    @property
    def file(self) -> str:
        """The file as it was named."""

    @property
    def size_bytes(self) -> int:
        """Length of the file."""

    @property
    def rows(self) -> int | None:
        """How many rows it holds, where the file says so before it is read."""

    @property
    def ignored(self) -> tuple[str, ...]:
        """Columns that are no fields, in the file's order; known in full once all blocks have been read."""

    def blocks(self) -> Iterator[Block]:
        """Its rows, in order, in blocks of bounded size. Read once."""

    def close(self) -> None:
        """Give the file back."""
