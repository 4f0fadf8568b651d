"""Which kernels there are: noted once all were compiled, so that a later process can load them before it needs them."""

import hashlib
import importlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import types
from numba.core.dispatcher import Dispatcher

from reservoir.compiled import cache_folder, entry_address, entry_points
from reservoir.kernel_sources import digest, sources

_ROOMS = ("railgun", "reservoir")
_FORM = 2  # of the note

# (module, name, types of the arguments); for an entry point, which has a type of its own, None.
Kernel = tuple[str, str, list[str] | None]


def load_all() -> bool:
    """Load every kernel that was noted: see `noted_kernels`, `load`. False where none were."""
    noted = noted_kernels()
    if noted is None:
        return False
    load(noted)
    return True


def noted_kernels() -> list[Kernel] | None:
    """None where none were noted for these sources, this Numba and this processor, or not as they are noted now."""
    try:
        noted: list[Kernel] = json.loads(_path().read_bytes())
    except (OSError, ValueError):
        return None
    if not all(hasattr(types, each) for _, _, arguments in noted for each in arguments or ()):
        return None
    return noted


def load(noted: Iterable[Kernel]) -> None:
    """Load kernels from the cache or, where one is not there any more, by compiling it."""
    for module, name, arguments in noted:
        function: Any = getattr(importlib.import_module(module), name)
        if arguments is None:
            entry_address(function)
        else:
            function.compile(tuple(getattr(types, each) for each in arguments))


def note_all() -> bool:
    """Note the kernels that this process has called, all that there are. False, having noted nothing, where some were
    compiled by this very process: it has those too that only kernels call, many more. The next one can note.

    Where the file cannot be written there is no note either.
    """
    if any(function.stats.cache_misses for function in _functions()):
        return False
    path = _path()
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(loaded_kernels()), encoding="utf-8")
        unfinished.replace(path)
    except OSError:
        pass
    return True


def loaded_kernels() -> list[Kernel]:
    """The kernels that this process can call without compiling or loading anything."""
    found: list[Kernel] = [(each.__module__, each.__name__, None) for each in set(entry_points())]
    for function in _functions():
        for signature in function.overloads:
            arguments = [str(each) for each in signature]
            # What takes more than words is called by kernels only, and comes with them.
            if all(hasattr(types, each) for each in arguments):
                found.append((function.__module__, function.__name__, arguments))
    return sorted(found, key=str)


def cached_kernels() -> int:
    """How many kernels of this tree, those that only kernels call among them, are in the cache."""
    places = {Path(function.stats.cache_path) for function in _functions()}
    return sum(1 for place in places for _ in place.glob("*.nbc"))


def _functions() -> Iterable[Any]:
    for module_name, module in list(sys.modules.items()):
        if module_name.split(".")[0] in _ROOMS:
            for value in list(vars(module).values()):
                if isinstance(value, Dispatcher) and value.__module__ == module_name:
                    yield value


def _path() -> Path:
    """By all that what is called depends on: sources and their place, Numba, the processor."""
    place = Path(numba.config.CACHE_DIR)
    facts = (
        _FORM,
        cache_folder().name,
        digest(sources()),  # those without kernels too: they decide what is called
        __file__,
        sys.implementation.cache_tag,
        numba.__version__,
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    return place / f"kernels-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}.json"
