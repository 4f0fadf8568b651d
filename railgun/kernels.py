"""Compiles every kernel into the cache: `python -m railgun.kernels`.

A kernel is compiled when it is first called; every later process finds it in the cache. This compiles all of them at
once (`railgun.kernel_list`), so that neither the first event of a new installation nor the tests wait for compiling. As
many processes compile as there are processors. The kernels then become an image (`reservoir.native.image`), with which
every later process begins.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from railgun import kernel_list
from railgun.child_python import child_python
from railgun.config.processors import processors
from railgun.exclusive import Waits, exclusive
from railgun.kernel_progress import LINKING, Told, waiting_text
from reservoir.native import image as kernel_image
from reservoir.native.cache import cache_folder
from reservoir.native.jit import is_image, use_numba
from reservoir.native.kernel_mode import IS_CHECKED

_PACKAGES = ("railgun", "reservoir")
# More would wait for one another: a few kernels take a quarter of the time, each in one process.
_PROCESSES_MAX = 8
_LOOK_S, _LINE_S = 0.5, 5.0
_WORK = "import sys; from railgun.kernels import compile_given; compile_given(int(sys.argv[1]))"


def load_all() -> None:
    """Load all kernels, by Numba. Those that are not in the cache are compiled. If there is no image, it is made."""
    use_numba()
    for each in kernel_list.kernels():
        each.load()
    if not IS_CHECKED and not kernel_image.is_there():
        kernel_list.link()


def compile_all(told: Told) -> None:
    """Compile all kernels into the cache and make the image, unless there is one. Other processes wait meanwhile.

    A process that fails says why on stderr. Raises SystemExit then.
    """
    if is_image() or kernel_image.is_there():
        return
    with compiling_alone(told.waits):
        # Another process may have made it meanwhile. An image that is not whole is made again.
        if kernel_image.is_there():
            return
        use_numba()
        if missing := _missing():
            _compile_in_processes(missing, told.at)
        if missing or not IS_CHECKED:
            told.links()
            load_all()


def _missing() -> list[int]:
    """Return the places in `kernels()` of those that the cache does not have."""
    from reservoir.native.shared_cache import is_cached

    return [
        place
        for place, each in enumerate(kernel_list.kernels())
        if not is_cached(getattr(each.function, "py_func", each.function), each.signature)
    ]


def _compile_in_processes(places: Sequence[int], told: Callable[[int, int], None]) -> None:
    """Have other processes compile the kernels at some places of `kernels()`. Raises SystemExit if one fails.

    told: called with how many functions are compiled, and of how many.
    """
    from reservoir.native.shared_cache import dispatchers, is_begun

    functions = dispatchers(_PACKAGES)
    with ExitStack() as started:
        children = []
        for child in _started(places):
            children.append(started.enter_context(child))
            started.callback(child.kill)
        while running := [each for each in children if each.poll() is None]:
            told(sum(map(is_begun, functions)), len(functions))
            if any((each.returncode or 0) > 0 for each in children):
                break
            with suppress(subprocess.TimeoutExpired):
                running[0].wait(_LOOK_S)
    codes = [child.returncode for child in children]
    if max(codes) > 0:
        raise SystemExit(max(codes))
    for code in codes:
        if code < 0:
            # The caller compiles what it has left.
            sys.stderr.write(
                f"A process that compiled kernels was ended by signal {-code}: too little memory?\n"
            )


def _started(places: Sequence[int]) -> Iterator["subprocess.Popen[bytes]"]:
    """Start processes, which take the places from one pipe, a byte each."""
    given, giving = os.pipe()
    try:
        os.write(giving, bytes(places))
        os.close(giving)
        command = child_python("-c", _WORK, str(os.getpid()))
        for _ in range(min(len(places), processors(), _PROCESSES_MAX)):
            yield subprocess.Popen(command, stdin=given, stdout=subprocess.DEVNULL)
    finally:
        os.close(given)


def compile_given(parent: int) -> None:
    """Compile the kernels whose places in `kernels()` standard input has, a byte each, until it or the parent ends.

    parent: the number of the process that has started this one.
    """
    from reservoir.native.shared_cache import dispatchers, share

    # Ctrl-C goes to all of these processes. The parent alone says so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    kernels = kernel_list.kernels()
    share(dispatchers(_PACKAGES), Path(os.environ["NUMBA_CACHE_DIR"]) / "functions.lock")
    while os.getppid() == parent and (place := os.read(0, 1)):
        kernels[place[0]].load()


@contextmanager
def compiling_alone(waits: Waits | None = None) -> Iterator[None]:
    """Keep other processes from compiling while the block runs. Those that wait find the compiled kernels in the cache.

    waits: as for `exclusive`.

    A server and a node that start together would otherwise share the processors to compile the same kernels.
    """
    with ExitStack() as held:
        # If nothing can be kept in the cache, there is no reason to wait.
        with suppress(OSError):
            held.enter_context(exclusive(cache_folder().with_name("compiling.lock"), waits))
        yield


class _Shown:
    """Says on stderr how far compiling is: a line that changes on a terminal, elsewhere a line every five seconds."""

    def __init__(self) -> None:
        self._began_s = self._next_s = time.perf_counter()
        self._is_begun, self._is_terminal, self._is_within_line = False, sys.stderr.isatty(), False

    def at(self, done: int, of: int) -> None:
        """Say how many functions are compiled."""
        if not self._is_begun:
            self._is_begun = True
            self._line(f"Compiling kernels into {cache_folder()}: a minute or two, once.")
        self._now_and_then(f"{done} of {of} functions compiled")

    def waits(self, pid: int | None) -> None:
        """Say that another process is waited for."""
        self._now_and_then(waiting_text(pid))

    def links(self) -> None:
        """Say that kernels are linked."""
        self._is_begun = True
        self._line(f"{LINKING[0].upper()}{LINKING[1:]}.")

    def end(self) -> None:
        """Say how long it took, if anything was compiled."""
        if self._is_begun:
            self._line(f"Compiled in {time.perf_counter() - self._began_s:.0f} s.")

    def _now_and_then(self, text: str) -> None:
        now_s = time.perf_counter()
        said = f"{text}, {now_s - self._began_s:.0f} s"
        if self._is_terminal:
            self._is_within_line = True
            # What was longer before is wiped out.
            self._say(f"\r{said}\x1b[K")
        elif now_s >= self._next_s:
            self._next_s = now_s + _LINE_S
            self._say(f"{said}\n")

    def _line(self, text: str) -> None:
        self._say(f"\n{text}\n" if self._is_within_line else f"{text}\n")
        self._is_within_line = False

    def _say(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def main() -> None:
    """Compile unless there is an image. It says so on stderr, because it takes a minute or two, once."""
    shown = _Shown()
    compile_all(shown)
    shown.end()


if __name__ == "__main__":
    main()
