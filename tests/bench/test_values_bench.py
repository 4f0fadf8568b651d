"""The bench of values: a real server is asked beside events, and one line of JSON comes at its end."""

import json
import subprocess
import sys


def test_the_command_ends_with_one_line_of_json() -> None:
    command = [sys.executable, "-m", "bench.values", "--only", "embedded", "--runs", "1", "--scale", "0.002"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["bench"] == "values"
    figures = said["figures"]
    assert 0 < figures["values_p50_ms"] <= figures["values_p99_ms"]
    assert figures["values_events_p999_ms"] > 0
