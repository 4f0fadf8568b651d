"""Which kernels there are: once all were compiled an image is made of them, for every later process to begin with."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from reservoir.native.jit import entry_points, is_image

_ROOMS = ("railgun", "reservoir")

# (module, name, types of the arguments); for an entry point, which has a type of its own, None.
Kernel = tuple[str, str, list[str] | None]


def make_image() -> bool:
    """Make the image of the kernels that this process has called, all that there are. False, having made none, where
    some were compiled by this very process: it has those too that only kernels call, many more. The next one can.

    Where the file cannot be written there is none either.
    """
    if is_image():
        return True
    if any(function.stats.cache_misses for function in _functions()):
        return False
    from reservoir.native.image_build import build

    with suppress(OSError):
        build(list(_called()), _entries())
    return True


def loaded_kernels() -> list[Kernel]:
    """The kernels that this process can call without compiling or loading anything."""
    found: list[Kernel] = [
        (each.__wrapped__.__module__, each.__wrapped__.__name__, None) for each in _entries()
    ]
    found += [
        (function.__module__, function.__name__, [str(each) for each in signature])
        for function, signature in _called()
    ]
    return sorted(found, key=str)


def cached_kernels() -> int:
    """How many kernels of this tree, those that only kernels call among them, are in the cache."""
    places = {Path(function.stats.cache_path) for function in _functions()}
    return sum(1 for place in places for _ in place.glob("*.nbc"))


def _called() -> Iterable[tuple[Any, Any]]:
    """Each with a signature that it was called with."""
    from numba.core import types

    for function in _functions():
        for signature in function.overloads:
            # What takes more than words is called by kernels only, and comes with them.
            if all(hasattr(types, str(each)) for each in signature):
                yield function, signature


def _entries() -> list[Any]:
    return list({each.__wrapped__: each for each in entry_points()}.values())


def _functions() -> Iterable[Any]:
    from numba.core.dispatcher import Dispatcher

    for module_name, module in list(sys.modules.items()):
        if module_name.split(".")[0] in _ROOMS:
            for value in list(vars(module).values()):
                if isinstance(value, Dispatcher) and value.__module__ == module_name:
                    yield value
