"""The comparison of revisions: which side's bench measures which side's modules, and what one side lacks is told."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import children, comparison
from bench.kept_results import read
from bench.pairs import Pairs, lower_is_better

_BENCH = Path(children.__file__).parent
# What a comparison is made of; the benches themselves are made up.
_COMPARING = ("__init__", "children", "compare", "pairs", "process", "revision", "service")
_UNIT_CASES = """
THROUGHPUT = {"quick": None, "new_one": None, "cold_10m": None}
WORKLOADS = {**THROUGHPUT, "batch1": None}
"""
_UNIT_CHILD = """
import sys
from railgun import rooms
if sys.argv[1] == "new_one":
    from railgun import new_rooms
print('{"ready": 1}', flush=True)
for _ in sys.stdin:
    print('{"events_per_s": %d, "events_per_cpu_s": 10, "p50_ms": %d}' % (rooms.RATE, rooms.RATE), flush=True)
"""
# It starts a process, as benches do, in a folder where no module lies.
_TLS = """
import json, subprocess, sys
assert sys.argv[1:] == ["--only", "os", "--runs", "3", "--scale", "0.5"], sys.argv
command = [sys.executable, "-c", "from railgun import rooms; print(rooms.RATE)"]
rate = int(subprocess.run(command, cwd="/", stdout=subprocess.PIPE, text=True, check=True).stdout)
print("p999_ms_at_500 ...")
print(json.dumps({"bench": "tls", "figures": {"p999_ms_at_500": rate, "max_rate": 7 * rate, "idle": 0}}))
"""
_DRIVER = """
import json, subprocess, sys
from bench.children import environment_of
from bench.service import served_tree
command = [sys.executable, "-m", "railgun"]
rate = int(subprocess.check_output(command, cwd=served_tree(), env=environment_of(served_tree())))
print(json.dumps({"figures": {sys.argv[2]: rate}}))
"""
_REMOVED = "raise SystemExit('no such option')"


class Repository:
    """A tree under git, with made-up benches."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.write("railgun/__init__.py", "")
        for name in _COMPARING:
            shutil.copy(_BENCH / f"{name}.py", self._path(f"bench/{name}.py"))
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> None:
        """Run git as somebody."""
        somebody = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
        subprocess.run(["git", *somebody, *arguments], cwd=self._folder, check=True)

    def write(self, name: str, text: str) -> None:
        """Make a file."""
        self._path(name).write_text(text, encoding="utf-8")

    def commit(self) -> None:
        """All that there is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a revision")

    def compare(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """The code, the last line and what was said of problems."""
        command = [sys.executable, "-m", "bench.compare", *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=250)
        assert not list((self._folder / ".cache" / "compare").glob("*"))
        return done.returncode, json.loads((done.stdout.splitlines() or ["{}"])[-1]), done.stderr

    def _path(self, name: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A revision, and a tree in which the module that its benches import has another name."""
    made = Repository(tmp_path / "tree")
    for name, text in (("unit_cases", _UNIT_CASES), ("unit_child", _UNIT_CHILD), ("tls", _TLS)):
        made.write(f"bench/{name}.py", text)
    for name in ("http", "e2e", "values"):
        made.write(f"bench/{name}.py", _REMOVED)
    made.write("railgun/__main__.py", "from railgun.rooms import RATE\nprint(RATE)\n")
    made.write("railgun/rooms.py", "RATE = 4\n")
    made.write("railgun/kernels.py", "print('compiled')\n")
    made.commit()
    made.git("mv", "railgun/rooms.py", "railgun/new_rooms.py")
    made.git("rm", "--quiet", "railgun/kernels.py")
    made.write("railgun/new_rooms.py", "RATE = 5\n")
    renamed = ("import rooms", "import new_rooms as rooms")
    made.write("bench/unit_child.py", _UNIT_CHILD.replace(*renamed))
    made.write("bench/tls.py", _TLS.replace(*renamed).replace('"max_rate"', '"max_rate_per_s"'))
    made.write("bench/values.py", _TLS)
    for name in ("http", "e2e"):
        made.write(f"bench/{name}.py", _DRIVER)
    made.write("railgun/__main__.py", "from railgun.new_rooms import RATE\nprint(RATE)\n")
    return made


def test_each_side_runs_its_own_bench_on_its_own_modules(repository: Repository) -> None:
    code, last, said = repository.compare("HEAD", "--only", "quick", "batch1", "--runs", "3")
    assert code == 0, said
    assert last["figures"] == {"quick": 1.25, "quick_per_cpu": 1.0, "batch1_p50_ms": 1.25}
    assert last["medians"]["quick"] == [4.0, 5.0]
    # The kernels of this side cannot be compiled ahead; that stops nothing.
    assert "\nthis tree: python -m railgun.kernels: ended with code 1\n" in said
    assert "HEAD: python -m railgun.kernels" not in said
    assert (last["lower_is_better"], last["not_compared"]) == (["batch1_p50_ms"], {})


def test_what_one_side_lacks_is_told_and_the_others_go_on(repository: Repository) -> None:
    only = ["values:engine", "new_one", "tls:os", "quick"]
    code, last, said = repository.compare(
        "HEAD", "--runs", "2", "--each", "3", "--scale", "0.5", "--only", *only
    )
    assert code == 1
    assert last["figures"] == {"p999_ms_at_500": 1.25, "quick": 1.25, "quick_per_cpu": 1.0}
    told = last["not_compared"]
    assert told.pop("max_rate") == "this tree has no such figure"
    assert told.pop("max_rate_per_s") == "HEAD has no such figure"
    assert told.pop("idle") == "HEAD measured 0"
    assert told.pop("values:engine").startswith("HEAD: python -m bench.values --only engine")
    assert told.pop("new_one") == "HEAD: python -m bench.unit_child new_one 0.5: ended with code 1"
    assert not told
    assert "values:engine: not compared: HEAD: " in said
    assert "tls:os: run 2 of 2, this tree\ntls:os: run 2 of 2, HEAD\n" in said


def test_this_trees_injector_drives_the_servers_of_both_sides(repository: Repository) -> None:
    only = ["http:os", "e2e:in_out", "e2e:unit_topic"]
    code, last, said = repository.compare("HEAD", "--runs", "1", "--only", *only)
    assert (code, last["figures"]) == (1, {"os": 1.25, "in_out": 1.25}), said
    # Its bench makes the engine's own records, so each side has to run its own.
    assert list(last["not_compared"]) == ["e2e:unit_topic"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nowhere"], "nowhere: no revision of this tree"), (["HEAD", "--only", "quik"], "'quik' is neither")],
)
def test_what_is_not_known_is_refused(repository: Repository, arguments: list[str], message: str) -> None:
    code, _, said = repository.compare(*arguments)
    assert code == 2
    assert message in said


def test_the_median_of_ratios_is_that_of_pairs() -> None:
    pairs = Pairs(("old", "new"))
    for base, new in ((100.0, 110.0), (200.0, 180.0), (50.0, 50.0)):
        pairs.add({"rate": base}, {"rate": new})
    assert pairs.summary()["figures"] == {"rate": 1.0}
    assert pairs.summary()["medians"] == {"rate": [100.0, 110.0]}


def test_what_is_kept_becomes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "FOLDER", tmp_path)
    pairs = Pairs(("old", "new"))
    for base, new in ((100.0, 110.0), (200.0, 180.0), (50.0, 50.0)):
        pairs.add({"max_rate": base, "p50_ms": base}, {"max_rate": new, "p50_ms": new, "bulk": new})
    pairs.missing["http:os"] = "the fourth run ended"
    parameters = {"base": "0123456789", "runs": 4, "each": 1, "scale": 1.0}
    comparison.keep(parameters, "http:os", pairs)
    comparison.keep(parameters, "http:fsync", Pairs(("old", "new"), missing={"http:fsync": "it ended"}))
    comparison.keep(parameters, "http:os", Pairs(("old", "new"), missing={"http:os": "it ended at once"}))
    (path,) = tmp_path.iterdir()
    lines = comparison.text_of(read(path)).splitlines()
    assert lines[:6] == [
        "`http:os`:",
        "",
        "|  | `01234567` | this tree | ratio in pairs | pairs |  |",
        "| --- | --- | --- | --- | --- | --- |",
        "| `max_rate` | 100 | 110 | 1 (0.9 .. 1.1) | 3 |  |",
        "| `p50_ms` | 100 | 110 | 1 (0.9 .. 1.1) | 3 | lower is better |",
    ]
    assert lines[-3:] == [
        "- `http:os`: the fourth run ended",
        "- `http:os.bulk`: old has no such figure",
        "- `http:fsync`: it ended",
    ]


@pytest.mark.parametrize(
    "figure",
    [
        *(
            "recovery_s",
            "ready_after_kill_s",
            "p999_ms_at_500",
            "in_out_p999_ms_at_max",
            "batch1_p999_cpu_ms",
        ),
        *(
            "waits_at_500",
            "loop_us_one_by_one",
            "bulk_cpu_us",
            "window_1e6_rss_mib",
            "window_big_over_small_rss",
            "metrics_added_p999_ratio",
        ),
    ],
)
def test_times_and_sizes_are_better_when_lower(figure: str) -> None:
    assert lower_is_better(figure)


@pytest.mark.parametrize(
    "figure",
    [
        *("payments_1x3", "payments_1x3_per_cpu", "max_rate", "unit_topic", "bulk", "in_out_bulk_wide"),
        *("fill", "monotone_sum", "count_distinct_over_sum", "window_big_over_small", "validation_again"),
    ],
)
def test_rates_are_better_when_higher(figure: str) -> None:
    assert not lower_is_better(figure)
