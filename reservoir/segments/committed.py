"""The files of a reservoir that a checkpoint needs, to be put into another folder while the reservoir continues.

A snapshot of a task is made with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reservoir.files import File, Files
from reservoir.open_region.saved_rows import saved_rows_path
from reservoir.segments.length import Length
from reservoir.segments.segment import segment_path

_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class CommittedFiles:
    """The files that hold what a checkpoint has of a reservoir.

    files: links and copies them.
    fixed: these never change: segments that are full, and files of open rows.
    last: the segment in which the checkpoint ends; None if nothing was sealed. Its first `last_bytes` bytes count. The
        reservoir may append to it.
    """

    files: Files
    fixed: Sequence[Path]
    last: Path | None
    last_bytes: int

    def put_into(self, folder: Path, check: Callable[[], None]) -> None:
        """Fill a new folder, durably: with hard links to the fixed files, and a copy of the last segment.

        Any thread may call this.
        check: is called before each file, and between parts of the last one. What it raises ends this.
        Raises OSError.
        """
        self.files.make_folder(folder)
        for path in self.fixed:
            check()
            self.files.link(path, folder / path.name)
        if self.last is not None:
            source, target = self.files.open_read(self.last), self.files.create(folder / self.last.name)
            try:
                self._copy(source, target, check)
                target.sync()
            finally:
                source.close()
                target.close()
        self.files.sync_folder(folder)

    def _copy(self, source: File, target: File, check: Callable[[], None]) -> None:
        at = 0
        while at < self.last_bytes:
            check()
            piece = source.read(at, min(_PIECE_BYTES, self.last_bytes - at))
            if not piece:
                raise OSError(f"{self.last} ends at byte {at}, the checkpoint has {self.last_bytes} of it")
            at += len(piece)
            rest = memoryview(piece)
            while rest:
                rest = rest[target.write(rest) :]


def committed_files(
    files: Files, folder: Path, kept_from: int, length: Length, saved_rows: Sequence[int]
) -> CommittedFiles:
    """Return the files of a folder that a checkpoint needs.

    kept_from: the oldest segment that is kept. length, saved_rows: those of the checkpoint.
    """
    fixed = [saved_rows_path(folder, number) for number in saved_rows]
    if not length.chunks:
        return CommittedFiles(files, fixed, None, 0)
    fixed += [segment_path(folder, number) for number in range(kept_from, length.segment)]
    return CommittedFiles(files, fixed, segment_path(folder, length.segment), length.size_bytes)
