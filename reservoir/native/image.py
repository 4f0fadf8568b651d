"""The image: all kernels that Python calls, as one object of machine code. A process that has it needs no Numba.

`jit.py` loads the image when it is imported; `image_build.py` saves it. Importing Numba and loading the kernels from
its cache one by one takes most of a second of processor time, at every start of a process. So once all are compiled
they are linked into one object, each with a function that Python calls directly; loading that takes milliseconds. An
image is valid for one state and place of the sources, one version of Python and of Numba, and one processor. If one of
these differs, another image is needed.

A file has the CRC-32 of all that follows (four bytes, little-endian), one line of JSON (`Header`), and the object in
the system's format. It is written whole and renamed.
"""

import ctypes
import hashlib
import importlib.metadata
import os
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import msgspec

from reservoir.native.cache import cache_folder, numba_folder, others_may_write
from reservoir.native.kernel_mode import IS_CHECKED
from reservoir.native.sources import digest, sources

_FORM = 3
_FASTCALL = 0x0080  # METH_FASTCALL
_CRC_BYTES = 4
# These variables say for which processor Numba compiles. Its cache depends on them too.
_CHOSEN = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX")

OBJECTS = {"railgun_none": None, "railgun_type_error": TypeError, "railgun_runtime_error": RuntimeError}
"""The Python objects to which the code of an image refers, by symbol."""


class Header(msgspec.Struct):
    """The first line of the file.

    kernels: (module, name) of each function that Python calls. The symbol of each is `call` and its index.
    entries: (module, name) of each function that kernels call by its address. The symbol is `entry` and its index.
    """

    kernels: list[tuple[str, str]]
    entries: list[tuple[str, str]]


class Image:
    """A loaded image.

    calls: by module and name, the object that Python calls instead of the function.
    addresses: by module and name, the address of a function that kernels call by address.
    keeper: uint64[1], the identity of the thread that keeps the interpreter lock (the GIL) while a kernel runs; 0 if
        none.
    """

    def __init__(self, header: Header, code: bytes) -> None:
        # The names are our own, because Numba gives some of CPython's names another meaning.
        for name, value in OBJECTS.items():
            llvm.add_symbol(name, id(value))
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
        # The engine and all objects made from its addresses live as long as the process.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        keeper = (ctypes.c_uint64 * 1).from_address(self._engine.get_global_value_address("railgun_keeper"))
        self.keeper = memoryview(keeper).cast("B").cast("Q")
        self._methods: list[_Method] = []
        self.calls = {
            (module, name): self._callable(module, name, self._engine.get_function_address(f"call{index}"))
            for index, (module, name) in enumerate(header.kernels)
        }
        self.addresses = {
            (module, name): self._engine.get_function_address(f"entry{index}")
            for index, (module, name) in enumerate(header.entries)
        }

    def _callable(self, module: str, name: str, address: int) -> Callable[..., Any]:
        method = _Method(name.encode(), address, _FASTCALL, None)
        self._methods.append(method)
        made: Callable[..., Any] = _new_function(ctypes.byref(method), None, module)
        return made


class _Method(ctypes.Structure):
    """PyMethodDef of CPython's C API."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new_function: Any = ctypes.pythonapi.PyCFunction_NewEx
_new_function.restype = ctypes.py_object
_new_function.argtypes = (ctypes.POINTER(_Method), ctypes.c_void_p, ctypes.py_object)


def is_there() -> bool:
    """Whether a process that starts now has an image. Loads neither the image nor numpy."""
    return not IS_CHECKED and _read() is not None


def load() -> Image | None:
    """Load the image of this process. None if there is none."""
    read = _read()
    return None if read is None else Image(msgspec.json.decode(read[0], type=Header), read[1])


def _read() -> tuple[bytes, bytes] | None:
    """Return the header and the code. None if there is no image for this process, or if it is not whole, or if other
    users may have changed it.
    """
    try:
        if others_may_write(path()):
            return None
        data = path().read_bytes()
    except OSError:
        return None
    if zlib.crc32(data[_CRC_BYTES:]).to_bytes(_CRC_BYTES, "little") != data[:_CRC_BYTES]:
        return None
    line, _, code = data[_CRC_BYTES:].partition(b"\n")
    return (line, code) if code else None


def save(header: Header, code: bytes) -> None:
    """Write an image's file. Raises OSError."""
    place = path()
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f"{place.name}.{os.getpid()}")
    data = msgspec.json.encode(header) + b"\n" + code
    try:
        unfinished.write_bytes(zlib.crc32(data).to_bytes(_CRC_BYTES, "little") + data)
        unfinished.replace(place)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


@cache
def path() -> Path:
    """Return the path of the image, which depends on all that the code does: sources, Python, Numba, the processor."""
    facts = (
        _FORM,
        cache_folder().name,
        digest(sources()),  # also those without kernels, because they decide which kernels are called
        __file__,
        sys.implementation.cache_tag,
        importlib.metadata.version("numba"),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        [os.environ.get(name) for name in _CHOSEN],
    )
    return numba_folder() / f"kernels-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}.image"
