"""The script for spark-submit is found by its file's name, and knows its command."""

import subprocess
import sys
from pathlib import Path

import railgun.spark_submit


def test_the_script_runs_by_its_file_name() -> None:
    script = str(Path(railgun.spark_submit.__file__))
    done = subprocess.run(
        [sys.executable, script, "validate", "--help"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "railgun validate definitions.toml" in done.stdout
