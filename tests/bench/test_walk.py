"""The walks of an event and of a registration pass the code that they must."""

import json
import subprocess
import sys


def test_both_walks_are_listed_and_counted() -> None:
    command = [sys.executable, "-m", "bench.walk", "--walks", "2"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=250)
    *listed, last = done.stdout.splitlines()
    figures = json.loads(last)["figures"]
    for walk, first in (("event", "Engine.score_each"), ("registration", "Engine.register_metrics")):
        files = {
            file: names.split(", ") for of, file, names in (each.split(": ") for each in listed) if of == walk
        }
        assert figures[f"{walk}_files"] == len(files)
        assert figures[f"{walk}_functions"] == sum(map(len, files.values()))
        assert [names for names in files.values() if first in names]
        assert {file.partition("/")[0] for file in files} <= {"railgun", "reservoir", "frontend"}
