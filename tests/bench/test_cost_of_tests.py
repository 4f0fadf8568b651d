"""What tests cost: a row for each folder, with what the processes cost that its tests waited for."""

import re
import subprocess
import sys
from pathlib import Path

_TEST = '''
import subprocess, sys
BUSY = """
import time
while time.process_time() < {busy_s}: pass
"""
def test_it():
    subprocess.run([sys.executable, "-c", BUSY], check=True)
'''


def test_children_count_and_workers_hand_on_what_they_counted(tmp_path: Path) -> None:
    for folder, busy_s in ("dear", 2.0), ("cheap", 0.1):
        place = tmp_path / "tests" / folder
        place.mkdir(parents=True)
        (place / f"test_{folder}.py").write_text(_TEST.format(busy_s=busy_s), encoding="utf-8")
    root = Path(__file__).resolve().parents[2]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "bench.cost_of_tests",
        "-n",
        "2",
        f"--rootdir={tmp_path}",
        ".",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(root)}, stdout=subprocess.PIPE, text=True, timeout=250
    )
    assert done.returncode == 0, done.stdout
    rows = re.findall(r"^\| `tests/(\w+)` \| (\d+) \|$", done.stdout, re.MULTILINE)
    assert [folder for folder, _ in rows] == ["dear", "cheap"]
    assert 2 <= int(rows[0][1]) <= 10
