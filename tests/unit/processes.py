"""Units as real processes: started, killed, stopped; and what is sent to them meanwhile."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.forked import ROOT, Forked
from tests.unit.fixed_plan import write_plan

__all__ = ["DEFINITIONS", "PLAIN", "ROOT", "event", "unit_process", "write_config"]

# The nodes whose folders and topics tests/golden/folders/before_copies has knew this.
PLAIN = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "shop"]
partitions = 2
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
shop = "long"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS total FROM s GROUP BY card OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS of_shop, last(x) AS newest, max(x) AS most FROM s GROUP BY shop OVER SLIDING 1 SECOND"
"""
DEFINITIONS = (
    PLAIN
    + """
[[metrics]]
sql = "SELECT avg(x) AS usual FROM s GROUP BY card OVER INFINITE EXCLUDE CURRENT"
[[metrics]]
sql = '''SELECT count(*) FILTER (WHERE MINUTE(CAST(id * 1800000 AS timestamp) IN 'Asia/Kolkata') = 0) AS odd
  FROM s GROUP BY shop OVER SLIDING 1 SECOND'''
[[metrics]]
sql = "DERIVE x - usual AS above, n + of_shop AS both, total / n AS mean FROM s"
"""
)


def event(number: int) -> dict[str, Any]:
    """The event of a number; one in twenty is late, one in thirty comes twice."""
    late_ms = 9_000 if number % 20 == 19 else 0
    return {
        "id": number - 1 if number % 30 == 29 else number,
        "ts": 1_700_000_000_000 + 10 * number - late_ms,
        "card": f"c{number % 7}",
        "shop": number % 5,
        "x": number * 0.1,
    }


def write_config(folder: Path, broker: str, prefix: str, cluster: str = "") -> Path:
    """The settings of a node: checkpoints all the time, small caches. cluster: more of that section."""
    file = folder / "railgun.toml"
    file.write_text(
        f"""
[cluster]
broker = "{broker}"
topic_prefix = "{prefix}"
positions_interval_ms = 10
{cluster}
[engine]
checkpoint_interval_s = 0.1
row_cache_bytes = "4MiB"
page_cache_bytes = "8MiB"
chunk_cache_bytes = "4MiB"
block_cache_bytes = "4MiB"
write_buffer_bytes = "4MiB"
[kafka]
fetch.wait.max.ms = 30
reconnect.backoff.max.ms = 200
""",
        encoding="utf-8",
    )
    return file


@contextmanager
def unit_process(
    folder: Path,
    config: Path,
    index: int = 0,
    units: int = 1,
    before: Sequence[str] = (),
    module: str = "railgun.unit",
    *,
    is_planned: bool = True,
) -> Iterator["subprocess.Popen[bytes] | Forked"]:
    """One unit; killed at the end of the block, if it still runs. before: words to put before its command; with none it
    is forked.  module: what runs it.  is_planned: whether a plan is written that gives it all tasks that there are."""
    if is_planned:
        write_plan([(config, folder)], units, before)
    place = ["--node-folder", str(folder), "--index", str(index), "--units", str(units)]
    words = [*place, "--config", str(config)]
    streams: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process: subprocess.Popen[bytes] | Forked
    if before:
        process = subprocess.Popen([*before, sys.executable, "-m", module, *words], cwd=ROOT, **streams)
    else:
        process = Forked(module, words, **streams)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
