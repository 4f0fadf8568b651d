"""Which sources compiled kernels depend on: the files that hold kernels, and all that these import.

They are found by what is in them, so that nothing here has to know who has kernels.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("frontend", "railgun", "reservoir")
"""The packages of the distribution, which are folders beside one another."""

_ROOT = Path(__file__).resolve().parents[2]
_TOOLCHAIN = b"reservoir.native"  # whoever holds kernels imports it, and few others do
_MAKES_IMAGES = b"from reservoir.native.image_build import"
# At the start of a line: what a function imports for itself, no kernel can call.
_IMPORT = re.compile(rf"\nfrom ((?:{'|'.join(PACKAGES)})[\w.]*) import (\([^)]*\)|[^\n]*)".encode())
_NAME = re.compile(rb"\w+")


@cache
def sources() -> dict[Path, bytes]:
    """Those of kernels, the other files of their rooms, and what makes an image of the kernels that are called; with
    their content.
    """
    found = {str(path) for path in kernel_sources()}
    for room in _rooms().values():
        if any(_holds_kernels(room[path]) for path in found & room.keys()):
            found.update(room)
        else:
            found.update(path for path, text in room.items() if _MAKES_IMAGES in text)
    return {Path(path): text for room in _rooms().values() for path, text in room.items() if path in found}


def digest(paths: Iterable[Path]) -> str:
    """Of the content of sources: 16 hexadecimal digits."""
    return hashlib.sha256(b"".join(sources()[path] for path in paths)).hexdigest()[:16]


@cache
def kernel_sources() -> list[Path]:
    """The files with kernels and, as constants are compiled in, whatever they import, directly or not."""
    texts = {path: text for room in _rooms().values() for path, text in room.items()}
    modules = {_module(path): path for path in texts}
    found = {path for path, text in texts.items() if _holds_kernels(text)}
    waiting = list(found)
    while waiting:
        imported = {modules[name] for name in _imported(texts[waiting.pop()]) & modules.keys()} - found
        found |= imported
        waiting += imported
    return sorted(map(Path, found))


@cache
def _rooms() -> dict[str, dict[str, bytes]]:
    """By folder, the content of each file: a folder directly in a package is a room with all below it; the loose files
    of a package are one more.
    """
    found = {}
    for package in PACKAGES:
        with os.scandir(_ROOT / package) as entries:
            within = sorted(entries, key=lambda each: each.name)
        found[package] = {each.path: _content(each.path) for each in within if each.name.endswith(".py")}
        for folder in (each.path for each in within if each.is_dir()):
            found[folder] = {path: _content(path) for path in _files(folder)}
    return found


def _files(folder: str) -> Iterator[str]:
    names = ((place, name) for place, _, names in os.walk(folder) for name in names)
    return iter(sorted(f"{place}/{name}" for place, name in names if name.endswith(".py")))


def _content(path: str) -> bytes:
    # All of it in one call: a process that starts reads some hundred files here.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, os.fstat(file).st_size)
    finally:
        os.close(file)


def _holds_kernels(text: bytes) -> bool:
    return _TOOLCHAIN in text and (b"@jit" in text or b"jit(" in text)


def _module(path: str) -> str:
    return path[len(str(_ROOT)) + 1 : -len(".py")].replace("/", ".").removesuffix(".__init__")


def _imported(text: bytes) -> set[str]:
    """The modules that a source imports, and whatever else it imports from them."""
    names: set[str] = set()
    for module, items in _IMPORT.findall(text):
        names.add(module.decode())
        names.update(f"{module.decode()}.{name.decode()}" for name in _NAME.findall(items))
    return names
