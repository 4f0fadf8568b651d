"""The walks of an event, of an event over HTTP, and of a registration through the code: which files and functions.

    python -m bench.walk [--json] [--walks N]

An event walks from `Engine.score_each` to its reply as encoded JSON; one over HTTP from the bytes of its request, on a
kept connection, to those of its answer; a registration from `Engine.register_metrics` until the metric answers, so
through its fill and the checkpoint behind it. A function is passed where Python enters a frame of it, in any thread;
compiled kernels do not count. Each walk is taken several times, after one that is not counted, and a function counts
where nearly all of them pass it: background work that happens to run beside one does not.

Prints the functions by file, and at the end how many there are, as one line of JSON; with --json only that.
"""

import argparse
import gc
import http.client
import json
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec
import pyarrow as pa
import uvloop
from numba.core.dispatcher import Dispatcher

from bench.children import TREE
from bench.load.lines import payment_lines
from bench.payments import BLOCK_EVENTS, blocks
from bench.unit_cases import THROUGHPUT
from frontend.embedded.backend import EmbeddedBackend
from frontend.http.service import Service, listen
from railgun import Engine
from railgun.config.settings import HttpSettings
from railgun.ingest.replies import replies_of

_PACKAGES = ("railgun", "reservoir", "frontend")
_STREAM = "payments"
_WORKLOAD = THROUGHPUT["payments_1x3"]
_PAYMENTS = replace(_WORKLOAD.payments, cards=1_000)
# More events than the window holds.
_FILLING_BLOCKS = 3
_FILLING_EVENTS = _FILLING_BLOCKS * BLOCK_EVENTS
_EVENT_WALKS, _REGISTRATION_WALKS, _NEARLY_ALL = 20, 10, 0.9
_ADDED = "SELECT sum(amount) AS added_{0} FROM payments GROUP BY card OVER SLIDING 3{0} SECONDS"
_PATH = f"/v1/streams/{_STREAM}/events"
_HEADERS = {"content-type": "application/json"}
_ANSWER_S = 30.0
# Background work that a walk left ends meanwhile.
_BETWEEN_S = 0.1
_POLL_S = 0.02
# A comprehension is a part of the function that it stands in; Python 3.12 and later give it no frame of its own.
_COMPREHENSION = re.compile(r"(\.<locals>)?\.<(listcomp|dictcomp|setcomp|genexpr)>")

# A function's file and name; and names of functions by file.
Function = tuple[str, str]
Passed = dict[str, list[str]]


class Walks:
    """Notes the functions that are entered while a walk is taken, in threads that begin after this object."""

    def __init__(self) -> None:
        self._entered: set[Function] = set()
        self._is_noting = False
        threading.setprofile(self._note)

    def passed(self, walk: Callable[[int], object], is_over: Callable[[], bool], times: int) -> Passed:
        """Return the functions that nearly all walks pass. walk: begins the walk of a number."""
        found: Counter[Function] = Counter()
        for number in range(times + 1):
            time.sleep(_BETWEEN_S)
            entered = self._walk(walk, is_over, number)
            if number:
                found.update({(file, _COMPREHENSION.sub("", name)) for file, name in entered})
        passed = {function for function, walks in found.items() if walks >= times * _NEARLY_ALL}
        return _by_file(passed - _kernels())

    def _walk(self, walk: Callable[[int], object], is_over: Callable[[], bool], number: int) -> set[Function]:
        self._entered = set()
        self._is_noting = True
        sys.setprofile(self._note)
        walk(number)
        # The call of `is_over` is no part of the walk.
        sys.setprofile(None)
        while not is_over():
            time.sleep(_POLL_S)
        self._is_noting = False
        return self._entered

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if self._is_noting and event == "call":
            self._entered.add(_function(frame.f_code))


def _function(code: CodeType) -> Function:
    return code.co_filename, code.co_qualname


def _kernels() -> set[Function]:
    """Return the compiled kernels, since Numba shows a profiler their frames too."""
    # A server freezes the objects of its start, and frozen objects are not in this list.
    gc.unfreeze()
    compiled = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {_function(each.py_func.__code__) for each in compiled}


def _by_file(functions: Set[Function]) -> Passed:
    """Return the functions of this project by file."""
    found: Passed = {}
    for file, name in sorted(functions):
        path = Path(file)
        if path.is_relative_to(TREE) and path.relative_to(TREE).parts[0] in _PACKAGES:
            found.setdefault(str(path.relative_to(TREE)), []).append(name)
    return found


def measured(folder: Path, event_walks: int, registration_walks: int) -> dict[str, Passed]:
    """Take all walks, and return their functions by the walk's name."""
    walks = Walks()
    texts = payment_lines(_PAYMENTS, _FILLING_EVENTS, 1 + event_walks).buffer.splitlines()
    with _filled(folder / "alone") as engine:

        def score(number: int) -> bytes:
            return msgspec.json.encode(replies_of(engine.score_each(_STREAM, [texts[number]]), None))

        def register(number: int) -> None:
            engine.register_metrics(_STREAM, _ADDED.format(number))

        def answers() -> bool:
            return not any(each.warming for each in engine.metrics(_STREAM))

        event = walks.passed(score, lambda: True, event_walks)
        registration = walks.passed(register, answers, registration_walks)
    with _filled(folder / "served") as engine, _served(engine) as connection:

        def post(number: int) -> None:
            connection.request("POST", _PATH, texts[number], _HEADERS)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body

        over_http = walks.passed(post, lambda: True, event_walks)
    return {"event": event, "http": over_http, "registration": registration}


@contextmanager
def _filled(folder: Path) -> Iterator[Engine]:
    """Yield an engine whose window is full, so that events leave it as others arrive."""
    with Engine(folder) as engine:
        engine.apply(_WORKLOAD.definitions)
        engine.score_table(_STREAM, pa.Table.from_batches(list(islice(blocks(_PAYMENTS), _FILLING_BLOCKS))))
        yield engine


@contextmanager
def _served(engine: Engine) -> Iterator[http.client.HTTPConnection]:
    """Yield a connection to a server over an engine, which the server closes at its end."""
    with listen(replace(HttpSettings(), port=0)) as listener:
        host, port = listener.getsockname()
        is_ready = threading.Event()
        service = Service(
            HttpSettings(), EmbeddedBackend(lambda: engine), listener, on_ready=lambda _: is_ready.set()
        )
        thread = threading.Thread(target=lambda: uvloop.run(service.run()))
        thread.start()
        connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_S)
        try:
            assert is_ready.wait(_ANSWER_S)
            yield connection
        finally:
            connection.close()
            service.stop()
            thread.join()


def main() -> None:
    """Take the walks, and print the functions that they passed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.walk", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="only the numbers, as one line of JSON")
    parser.add_argument(
        "--walks",
        type=int,
        metavar="N",
        help=f"take each walk so often (default: an event's {_EVENT_WALKS} times, "
        f"a registration's {_REGISTRATION_WALKS})",
    )
    arguments = parser.parse_args()
    walks = arguments.walks
    with tempfile.TemporaryDirectory(prefix="railgun-bench-") as folder:
        found = measured(Path(folder), walks or _EVENT_WALKS, walks or _REGISTRATION_WALKS)
    figures: dict[str, int] = {}
    for walk, passed in found.items():
        figures[f"{walk}_files"] = len(passed)
        figures[f"{walk}_functions"] = sum(map(len, passed.values()))
        for file, functions in passed.items():
            if not arguments.json:
                print(f"{walk}: {file}: {', '.join(functions)}")
    print(json.dumps({"bench": "walk", "figures": figures}))


if __name__ == "__main__":
    main()
