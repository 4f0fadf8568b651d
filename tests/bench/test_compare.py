"""The comparison of revisions: each side runs its own bench on its own modules, and what one side lacks is told."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import children
from bench.pairs import Pairs, lower_is_better

_BENCH = Path(children.__file__).parent
# What a comparison is made of; the benches themselves are made up.
_COMPARING = ("__init__", "children", "compare", "pairs", "process", "revision")
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
_HTTP = """
import json, subprocess, sys
assert sys.argv[1:] == ["--only", "os", "--runs", "3", "--scale", "0.5"], sys.argv
command = [sys.executable, "-c", "from railgun import rooms; print(rooms.RATE)"]
rate = int(subprocess.run(command, cwd="/", stdout=subprocess.PIPE, text=True, check=True).stdout)
print("p999_ms_at_500 ...")
print(json.dumps({"bench": "http", "figures": {"p999_ms_at_500": rate, "max_rate": 7 * rate, "idle": 0}}))
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
    for name, text in (("unit_cases", _UNIT_CASES), ("unit_child", _UNIT_CHILD), ("http", _HTTP)):
        made.write(f"bench/{name}.py", text)
    made.write("bench/e2e.py", _REMOVED)
    made.write("railgun/rooms.py", "RATE = 4\n")
    made.write("railgun/kernels.py", "print('compiled')\n")
    made.commit()
    made.git("mv", "railgun/rooms.py", "railgun/new_rooms.py")
    made.git("rm", "--quiet", "railgun/kernels.py")
    made.write("railgun/new_rooms.py", "RATE = 5\n")
    renamed = ("import rooms", "import new_rooms as rooms")
    made.write("bench/unit_child.py", _UNIT_CHILD.replace(*renamed))
    made.write("bench/http.py", _HTTP.replace(*renamed).replace('"max_rate"', '"max_rate_per_s"'))
    made.write("bench/e2e.py", _HTTP)
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
    only = ["e2e:in_out", "new_one", "http:os", "quick"]
    code, last, said = repository.compare(
        "HEAD", "--runs", "2", "--each", "3", "--scale", "0.5", "--only", *only
    )
    assert code == 1
    assert last["figures"] == {"p999_ms_at_500": 1.25, "quick": 1.25, "quick_per_cpu": 1.0}
    told = last["not_compared"]
    assert told.pop("max_rate") == "this tree has no such figure"
    assert told.pop("max_rate_per_s") == "HEAD has no such figure"
    assert told.pop("idle") == "HEAD measured 0"
    assert told.pop("e2e:in_out").startswith("HEAD: python -m bench.e2e --only in_out")
    assert told.pop("new_one") == "HEAD: python -m bench.unit_child new_one 0.5: ended with code 1"
    assert not told
    assert "e2e:in_out: not compared: HEAD: " in said
    assert "http:os: run 2 of 2, this tree\nhttp:os: run 2 of 2, HEAD\n" in said


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
        *("bulk_cpu_us", "window_1e6_rss_mib", "window_big_over_small_rss", "metrics_added_p999_ratio"),
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
