"""A file system in memory that remembers what was synced, so that a loss of power can be tried at any moment."""

import errno
import threading
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

BLOCK_BYTES = 512


@dataclass
class Inode:
    """One file's bytes, and those that would survive."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""


class MemoryFile:
    def __init__(self, files: "MemoryFiles", inode: Inode, name: str) -> None:
        self._files, self._inode, self._name = files, inode, name

    def write(self, data: bytes | memoryview) -> int:
        self._files.step("write", self._name, bytes(data))
        self._inode.data += data
        return len(data)

    def write_at(self, offset: int, data: bytes) -> None:
        self._files.step("overwrite", self._name, (offset, data))
        assert offset + len(data) <= len(self._inode.data)
        self._inode.data[offset : offset + len(data)] = data

    def read(self, offset: int, size_bytes: int) -> bytes:
        if offset < 0 or size_bytes < 0:
            raise OSError(errno.EINVAL, "Invalid argument", self._name)
        return bytes(self._inode.data[offset : offset + size_bytes])

    def size(self) -> int:
        return len(self._inode.data)

    def truncate(self, size_bytes: int) -> None:
        self._files.step("truncate", self._name, size_bytes)
        del self._inode.data[size_bytes:]

    def sync(self) -> None:
        self._inode.durable = bytes(self._inode.data)
        self._files.step("sync", self._name, None)

    def close(self) -> None:
        """Nothing is held."""


class MemoryFiles:
    """One folder. `journal` lists every change, so that the state after any of them can be built again."""

    def __init__(self) -> None:
        self.names: dict[str, Inode] = {}
        self.durable_names: dict[str, Inode] = {}
        self.journal: list[tuple[str, str, object]] = []
        self._lock = threading.Lock()

    def step(self, action: str, name: str, what: object) -> None:
        with self._lock:
            self.journal.append((action, name, what))

    def segments(self) -> dict[str, bytes]:
        """The bytes of the segments. Those of other files are no function of the log."""
        return {name: bytes(inode.data) for name, inode in self.names.items() if name.endswith(".seg")}

    def make_folder(self, folder: Path) -> None:
        """There is one folder."""

    def list(self, folder: Path) -> list[str]:
        return sorted(self.names)

    def create(self, path: Path) -> MemoryFile:
        if path.name in self.names:
            raise FileExistsError(errno.EEXIST, "exists", path.name)
        self.step("create", path.name, None)
        self.names[path.name] = Inode()
        return MemoryFile(self, self.names[path.name], path.name)

    def open_append(self, path: Path) -> MemoryFile:
        if path.name not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path.name)
        return MemoryFile(self, self.names[path.name], path.name)

    open_read = open_update = open_append

    def delete(self, path: Path) -> None:
        self.step("delete", path.name, None)
        del self.names[path.name]

    def link(self, path: Path, to: Path) -> None:
        raise AssertionError("there is one folder, and nothing is linked in it")

    def sync_folder(self, folder: Path) -> None:
        self.durable_names = dict(self.names)
        self.step("sync_folder", "", None)

    # --- loss of power -----------------------------------------------------------------------------

    @classmethod
    def replayed(
        cls, journal: "list[tuple[str, str, object]]", base: "MemoryFiles | None" = None
    ) -> "MemoryFiles":
        """The file system after these changes to `base`, all of which is durable."""
        files, folder = cls(), Path()
        for name, inode in base.names.items() if base else ():
            files.names[name] = files.durable_names[name] = Inode(bytearray(inode.data), bytes(inode.data))
        for action, name, what in journal:
            if action == "sync_folder":
                files.sync_folder(folder)
            elif action == "create":
                files.create(folder / name)
            elif action == "delete":
                files.delete(folder / name)
            else:
                file = files.open_append(folder / name)
                if action == "overwrite":
                    assert isinstance(what, tuple)
                    file.write_at(*what)
                    continue
                arguments = () if what is None else (what,)
                getattr(file, action)(*arguments)
        return files

    def without_power(self, random: Random) -> "MemoryFiles":
        """What may be found after the power came back: what was synced, and any part of what was not."""
        after = MemoryFiles()
        names = set(self.durable_names) | set(self.names)
        for name in sorted(names):
            before, now = self.durable_names.get(name), self.names.get(name)
            inode = random.choice([before, now]) if before is not now else now
            if inode is not None:
                data = bytearray(_survivors(inode, random))
                after.names[name] = after.durable_names[name] = Inode(data, bytes(data))
        return after


def _survivors(inode: Inode, random: Random) -> bytes:
    old, new = inode.durable, bytes(inode.data)
    how = random.choice(["old", "new", "prefix", "blocks"])
    if how == "old" or old == new:
        return old
    if how == "new":
        return new
    if how == "prefix" and len(new) > len(old):
        return new[: random.randint(len(old), len(new))]
    size = random.choice([len(old), len(new)])
    blocks = bytearray(size)
    for begin in range(0, size, BLOCK_BYTES):
        source = (
            old
            if begin + BLOCK_BYTES <= len(old)
            and old[begin : begin + BLOCK_BYTES] == new[begin : begin + BLOCK_BYTES]
            else random.choice([old, new])
        )
        part = source[begin : min(size, begin + BLOCK_BYTES)]
        kept = old[begin : min(size, begin + BLOCK_BYTES)]
        whole = part + kept[len(part) :]
        blocks[begin : begin + len(whole)] = whole
    return bytes(blocks)
