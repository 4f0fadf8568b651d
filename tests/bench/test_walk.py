"""The walks of an event, of one over HTTP and of a registration pass the code that they must."""

import json
import subprocess
import sys


def test_all_walks_are_listed_and_counted() -> None:
    command = [sys.executable, "-m", "bench.walk", "--walks", "2"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=250)
    *listed, last = done.stdout.splitlines()
    figures = json.loads(last)["figures"]
    firsts = {
        "event": "Engine.score_each",
        "http": "Connection.data_received",
        "registration": "Engine.register_metrics",
    }
    for walk, first in firsts.items():
        files = {
            file: names.split(", ") for of, file, names in (each.split(": ") for each in listed) if of == walk
        }
        assert figures[f"{walk}_files"] == len(files)
        assert figures[f"{walk}_functions"] == sum(map(len, files.values()))
        assert [names for names in files.values() if first in names]
        assert {file.partition("/")[0] for file in files} <= {"railgun", "reservoir", "frontend"}
