"""The real files, and that nothing else of the reservoir touches the operating system's."""

import ast
from pathlib import Path

import pytest

import reservoir
from reservoir.files import DiskFiles

ROOM = Path(reservoir.__file__).parent
# Compiled kernels, and the sources that they are of, are no data of ours.
ALLOWED = {"files.py", "numba_jit.py", "kernel_cache.py", "kernel_image.py", "kernel_sources.py"}
TOUCHING = {"open", "write_bytes", "write_text", "read_bytes", "read_text", "unlink", "mkdir", "rmdir"}


def test_a_file_is_written_read_cut_and_deleted(tmp_path: Path) -> None:
    files = DiskFiles()
    folder = tmp_path / "a" / "b"
    files.make_folder(folder)
    files.make_folder(folder)
    file = files.create(folder / "one")
    assert file.write(b"hello") == 5
    assert file.write(memoryview(b" world")) == 6
    file.sync()
    files.sync_folder(folder)
    reader = files.open_read(folder / "one")
    assert reader.read(6, 100) == b"world"
    assert reader.read(100, 5) == b""
    assert reader.size() == 11
    file.close()
    again = files.open_append(folder / "one")
    again.truncate(5)
    assert again.write(b"!") == 1
    assert reader.read(0, 10) == b"hello!"
    again.close()
    again.close()
    assert files.list(folder) == ["one"]
    with pytest.raises(FileExistsError):
        files.create(folder / "one")
    files.delete(folder / "one")
    assert reader.read(0, 10) == b"hello!"
    reader.close()
    assert files.list(folder) == []
    with pytest.raises(FileNotFoundError):
        files.open_append(folder / "one")
    with pytest.raises(FileNotFoundError):
        files.open_read(folder / "one")


def test_only_files_touches_files() -> None:
    found = []
    for path in sorted(ROOM.glob("*.py")):
        if path.name in ALLOWED:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import) and any(
                alias.name in ("os", "shutil", "io") for alias in node.names
            ):
                found.append(f"{path.name}:{node.lineno}")
            if isinstance(node, ast.Call):
                named = node.func.id if isinstance(node.func, ast.Name) else ""
                asked = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if named == "open" or asked in TOUCHING - {"open"}:
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []
