"""Rules for source text: sizes, docstrings, names, nothing left open, nothing of one machine."""

import ast
import re
from collections.abc import Iterator

from tests.tidy.tree import Tree

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
# Tests may be longer: what one shows is read from its beginning to its end.
TEST_FILE_LINES_MAX = 600
TEST_FUNCTION_LINES_MAX = 70
# One class that people use, with a method for each thing that it does.
LONGER = "railgun/engine/engine.py"

_NOT_AMID_EVENTS = frozenset({"tests", "bench"})

_BY_MASKED_ARRAYS = frozenset(
    f"np.{name}"
    for name in (
        *("unique", "unique_values", "union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"),
        *("median", "percentile", "quantile", "nanmedian", "nanpercentile", "nanquantile"),
    )
)

# What a task and its files are handed by their host, so that a simulator can hand them its own. Locks are free to use.
_HOST_AND_BELOW = frozenset(
    {
        "reservoir",
        *(f"railgun/{room}" for room in ["host", "state", "task", "interpreter", "plan", "aggregators"]),
    }
)
# Of the unit the same: what its loop is made of. Its process is the machine's.
_UNIT_LOOP = frozenset(f"railgun/unit/{name}.py" for name in ["loop", "hosts", "outstanding", "positions"])
_MODULES_HANDED_IN = frozenset(
    {"time", "random", "secrets", "uuid", "asyncio", "multiprocessing", "sched", "subprocess"}
)
_NAMES_HANDED_IN = re.compile(
    r"os\.(urandom|getrandom|fork|times)"
    r"|threading\.(Thread|Timer|Event|Condition|Barrier|Semaphore|BoundedSemaphore)"
    r"|concurrent\.futures\.(ThreadPoolExecutor|ProcessPoolExecutor|wait|as_completed)"
    r"|datetime\.(.*\.)?(now|utcnow|today)"
)
# The threads of a process, the defaults of `TaskEnvironment`, and the folder of compiled kernels.
_HANDING_IN = frozenset({"reservoir/thread_executor.py", "railgun/task/environment.py"})
_TOOLCHAIN = "reservoir/native"
LISTED_PLACES = _HOST_AND_BELOW | _UNIT_LOOP | _HANDING_IN | {_TOOLCHAIN}
"""What rules name. A rule looks at nothing where such a place has moved away, so `listed_places` fails then."""

BANNED_NAME_PARTS = frozenset({"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"})

# Words that had a meaning here and nowhere else, and what the field calls it.
RETIRED_WORDS = {
    "bury": "free, drop or dead-letter",
    "consent": "a cancellation token",
    "door": "a validator, source, sink or intake",
    "doors": "validators, sources, sinks or intakes",
    "foresee": "prefetch",
    "foreseen": "prefetched",
    "guest": "a process of lower priority",
    "hasten": "expedite",
    "laps": "a stage timer",
    "live_backfill": "a deepening",
    "live_backfills": "deepenings",
    "stale": "outdated",
    "upkeep": "maintenance",
}
_PRODUCT = frozenset({"railgun", "reservoir", "frontend"})
_WORD_OF_NAME = re.compile(r"[A-Z]?[a-z]+")

# Written in pieces, so that this file does not break its own rules.
_OPEN_END = re.compile(
    r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error"]) + r")\b"
)
_MACHINE_PATH = re.compile(
    r"(?<![\w.~$}])/(" + "|".join(["work", "root", "home", "opt", "Users", r"tmp/\w+"]) + r")\b"
)


def file_sizes(tree: Tree) -> Iterator[str]:
    """No Python file is longer than a reader can hold."""
    for path in tree.python():
        most = TEST_FILE_LINES_MAX if path.parts[0] == "tests" else FILE_LINES_MAX
        lines = tree.read(path).count("\n")
        if lines > most and path.as_posix() != LONGER:
            yield f"{path}: {lines} lines, at most {most}"


def function_sizes(tree: Tree) -> Iterator[str]:
    """Every function fits a screen."""
    for path in tree.python():
        most = TEST_FUNCTION_LINES_MAX if path.parts[0] == "tests" else FUNCTION_LINES_MAX
        for node in ast.walk(ast.parse(tree.read(path))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > most:
                yield f"{path}:{node.lineno}: {node.name} has {lines} lines, at most {most}"


def module_docstrings(tree: Tree) -> Iterator[str]:
    """Every file says in its first line why it exists."""
    for path in tree.python():
        if not (ast.get_docstring(ast.parse(tree.read(path))) or "").strip():
            yield f"{path}: no module docstring"


def names(tree: Tree) -> Iterator[str]:
    """No file or folder has a name that says nothing."""
    for path in tree.python():
        for part in (*path.parts[:-1], path.stem):
            if BANNED_NAME_PARTS.intersection(part.lower().split("_")):
                yield f"{path}: the name {part!r} does not say what is in it"


def retired_words(tree: Tree) -> Iterator[str]:
    """No name in the product brings back a word that was given up for the one that everybody knows."""
    for path in tree.python():
        if path.parts[0] not in _PRODUCT:
            continue
        found = {(path.stem, 1), *_names_bound(ast.parse(tree.read(path)))}
        for name, line in sorted(found, key=lambda each: each[1]):
            words = "_".join(map(str.lower, _WORD_OF_NAME.findall(name)))
            for word, called in RETIRED_WORDS.items():
                if f"_{word}_" in f"_{words}_":
                    yield f"{path}:{line}: {name}: {word} is called {called} here"


def _names_bound(module: ast.Module) -> Iterator[tuple[str, int]]:
    """The names that a module gives to anything, with their lines."""
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield name, node.lineno


def masked_arrays(tree: Tree) -> Iterator[str]:
    """No process imports numpy's masked arrays amid events: `np.unique` does where it is asked for values alone, and so
    does what is made of it."""
    for path in tree.python():
        if path.parts[0] in _NOT_AMID_EVENTS or path.parts[:2] == ("railgun", "spark"):
            continue
        for node in ast.walk(ast.parse(tree.read(path))):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in _BY_MASKED_ARRAYS:
                continue
            if not {each.arg for each in node.keywords} & {"return_index", "return_inverse"}:
                yield f"{path}:{node.lineno}: {ast.unparse(node.func)}; take reservoir.distinct"


def handed_in(tree: Tree) -> Iterator[str]:
    """A task and its files start no thread, read no clock and take no randomness of their own."""
    for path in tree.python():
        room = path.parts[0] if path.parts[0] == "reservoir" else "/".join(path.parts[:2])
        is_toolchain = path.is_relative_to(_TOOLCHAIN)
        is_handed = room in _HOST_AND_BELOW or path.as_posix() in _UNIT_LOOP
        if not is_handed or is_toolchain or path.as_posix() in _HANDING_IN:
            continue
        for node in ast.walk(ast.parse(tree.read(path))):
            if not isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute):
                continue
            for name in _handed_in_names(node):
                yield f"{path}:{node.lineno}: {name}; take it from what the task is handed"


def _handed_in_names(node: ast.Import | ast.ImportFrom | ast.Attribute) -> list[str]:
    """What a line imports, or the dotted name that it uses, where a task is to be handed that."""
    if isinstance(node, ast.Attribute):
        found, modules = [ast.unparse(node)], frozenset[str]()
    else:
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        found, modules = [f"{module}{each.name}" for each in node.names], _MODULES_HANDED_IN
    return [name for name in found if name.split(".")[0] in modules or _NAMES_HANDED_IN.fullmatch(name)]


def listed_places(tree: Tree) -> Iterator[str]:
    """Every folder and file that a rule names is there."""
    there = {each.as_posix() for path in tree.python() for each in (path, *path.parents)}
    for place in sorted(LISTED_PLACES - there):
        yield f"{place}: a rule names it, and it is not there"


def open_ends(tree: Tree) -> Iterator[str]:
    """Nothing is left for later inside the tree."""
    yield from _lines_matching(tree, _OPEN_END, "left open")


def machine_paths(tree: Tree) -> Iterator[str]:
    """Nothing names a folder of the machine it was written on."""
    yield from _lines_matching(tree, _MACHINE_PATH, "path of one machine")


def _lines_matching(tree: Tree, pattern: re.Pattern[str], what: str) -> Iterator[str]:
    for path in tree.texts():
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if found := pattern.search(line):
                yield f"{path}:{number}: {what}: {found[0]}"
