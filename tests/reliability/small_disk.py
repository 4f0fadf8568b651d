"""A disk of few bytes: a file system in memory that only processes inside its own namespace see."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

_PIECE = bytes(1 << 16)


class SmallDisk:
    """folder: as processes inside see it.  inside: words to put before a command that shall run there."""

    def __init__(self, folder: Path, keeper: "subprocess.Popen[str]") -> None:
        self.folder = folder
        target = f"--target={keeper.pid}"
        self.inside = [
            "nsenter",
            target,
            "--user",
            "--mount",
            "--preserve-credentials",
            f"--wd={os.getcwd()}",
        ]
        self._seen = Path(f"/proc/{keeper.pid}/root{folder}")

    @classmethod
    @contextmanager
    def mounted(cls, folder: Path, size_bytes: int) -> Iterator[Self]:
        """It lasts as long as the block. Skips the test where namespaces are not to be had."""
        folder.mkdir()
        words = f"mount -t tmpfs -o size={size_bytes} tmpfs '{folder}' && echo mounted && exec cat"
        keeper = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert keeper.stdout is not None
            if keeper.stdout.readline() != "mounted\n":
                pytest.skip("this system lets nobody mount a file system in a namespace of its own")
            yield cls(folder, keeper)
        finally:
            keeper.kill()
            keeper.communicate()

    @property
    def free_bytes(self) -> int:
        return shutil.disk_usage(self._seen).free

    def fill(self, left_bytes: int) -> None:
        """Have so many bytes left, and a page at the most."""
        self.clear()
        with (self._seen / "ballast").open("wb", buffering=0) as file:
            while (more := self.free_bytes - left_bytes) > 0:
                try:
                    file.write(_PIECE[:more])
                except OSError as error:
                    # Another has written meanwhile.
                    if error.errno != errno.ENOSPC:
                        raise

    def clear(self) -> None:
        """Give back what `fill` took."""
        (self._seen / "ballast").unlink(missing_ok=True)
