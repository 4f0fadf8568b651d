"""Measures `railgun run` over three million real flights: files in, results out."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from bench.children import ChildFailedError
from bench.report import Report

_PACKAGE, _MEMBER = "vega-datasets@3.2.1", "package/data/flights-3m.parquet"
_FETCH_SECONDS, _RUN_SECONDS = 300, 900
_WHOLE_SCALE = 0.5
_PART_ROWS = 200_000

FIELDS_AND_METRICS = """
date = "timestamp"
delay = "long"
distance = "long"
origin = "string"
destination = "string"
[[metrics]]
sql = "SELECT count(*) AS out_1h, avg(delay) AS out_delay_1h FROM flights GROUP BY origin OVER SLIDING 1 HOUR"
[[metrics]]
sql = "SELECT max(delay) AS out_worst_1d FROM flights GROUP BY origin OVER SLIDING 1 DAY"
[[metrics]]
sql = "SELECT count(*) AS in_1h, sum(distance) AS in_miles_1h FROM flights GROUP BY destination OVER SLIDING 1 HOUR"
[[metrics]]
sql = "SELECT stddev(delay) AS in_spread_1d FROM flights GROUP BY destination OVER SLIDING 1 DAY"
"""
_DEFINITIONS = f"""
[streams.flights]
time = "date"
partitioners = ["origin", "destination"]
lateness = "1m"
retention = "forever"
[streams.flights.fields]{FIELDS_AND_METRICS}"""


def measure(report: Report) -> None:
    """Report `run_flights_3m` in events/s, with reading and writing files; of a part of the file at small scales."""
    flights = fetched()
    if flights is None:
        return
    folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
    try:
        (folder / "definitions.toml").write_text(_DEFINITIONS, encoding="utf-8")
        if report.scale < _WHOLE_SCALE:
            flights = _part(flights, folder / "part.parquet")
        found = [_run(folder, flights) for _ in range(report.runs)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.note("run_flights_3m", found)


def _run(folder: Path, flights: Path) -> float:
    command = [sys.executable, "-m", "railgun", "run", str(folder / "definitions.toml"), str(flights)]
    command += ["--out", str(folder / "out.parquet"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_SECONDS)
    if done.returncode:
        raise ChildFailedError(f"railgun run: code {done.returncode}: {done.stderr.strip()}")
    return float(json.loads(done.stdout.splitlines()[-1])["events_per_s"])


def _part(whole: Path, part: Path) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(whole).slice(0, _PART_ROWS), part)
    return part


def fetched() -> Path | None:
    """Return the file in the user's cache folder, fetched there once with npm. Prints why if it returns None."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "railgun" / "datasets"
    flights = cache / "flights-3m.parquet"
    if flights.is_file():
        return flights
    if shutil.which("npm") is None:
        print("run_flights_3m: skipped: npm, which fetches its data, is not installed")
        return None
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        done = subprocess.run(
            ["npm", "pack", "--silent", _PACKAGE],
            cwd=temporary,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
        )
        archives = list(Path(temporary).glob("*.tgz"))
        if done.returncode or not archives:
            print(f"run_flights_3m: skipped: npm could not fetch {_PACKAGE}: {done.stderr.strip()[-200:]}")
            return None
        with tarfile.open(archives[0]) as archive:
            archive.extract(_MEMBER, temporary, filter="data")
        os.replace(Path(temporary) / _MEMBER, flights)
    return flights
