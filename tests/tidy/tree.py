"""The files that the tidy rules look at: those git knows, or would add."""

import os
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

_BINARY_SUFFIXES = frozenset(
    {".arrow", ".avro", ".bin", ".gz", ".npy", ".npz", ".parquet", ".png", ".rgs", ".zip"}
)


class Tree:
    """A folder of sources and docs; every path given and returned is relative to `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def files(self) -> list[Path]:
        """All files, sorted; in a git checkout without those it ignores."""
        if (self.root / ".git").exists():
            command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
            listed = subprocess.run(command, cwd=self.root, check=True, capture_output=True).stdout
            found = {Path(os.fsdecode(name)) for name in listed.split(b"\0") if name}
        else:
            found = {path.relative_to(self.root) for path in self.root.rglob("*")}
            found = {path for path in found if not _is_left_by_tools(path)}
        return sorted(path for path in found if (self.root / path).is_file())

    def python(self) -> Iterator[Path]:
        """The Python files."""
        return (path for path in self.files if path.suffix == ".py")

    def docs(self) -> Iterator[Path]:
        """The Markdown files."""
        return (path for path in self.files if path.suffix == ".md")

    def texts(self) -> Iterator[Path]:
        """Every file that holds text."""
        return (path for path in self.files if path.suffix not in _BINARY_SUFFIXES and self._is_text(path))

    def read(self, path: Path) -> str:
        """The text of a file of this tree."""
        return (self.root / path).read_text(encoding="utf-8")

    def _is_text(self, path: Path) -> bool:
        with (self.root / path).open("rb") as file:
            return b"\0" not in file.read(4096)


def _is_left_by_tools(path: Path) -> bool:
    folders = path.parts[:-1]
    return any(name == "__pycache__" or (name.startswith(".") and name != ".ci") for name in folders)
