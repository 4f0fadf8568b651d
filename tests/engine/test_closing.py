"""A closed engine lets go of its tasks' memory at once, even while somebody still holds the engine."""

import gc
import weakref
from pathlib import Path

from railgun.engine.engine import Engine

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
[streams.s.fields]
ts = "timestamp"
id = "long"
card = "string"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, max(x) AS m FROM s GROUP BY card OVER SLIDING 1 HOUR"
"""


def test_nothing_of_a_task_waits_for_a_search_for_cycles(tmp_path: Path) -> None:
    gc.disable()
    try:
        engine = Engine(tmp_path / "data", durability="os")
        engine.apply(DEFINITIONS)
        engine.score_many(
            "s", [{"id": n, "ts": 1_000 + n, "card": f"c{n % 9}", "x": n / 4} for n in range(300)]
        )
        (task,) = [host.task for host in engine._streams.live("s").hosts]
        parts = (task, task.table, task.pool, task.reservoir, task.store, task.admission)
        held = [weakref.ref(part) for part in parts]
        del task, parts
        engine.close()
        assert [each() for each in held if each() is not None] == []
    finally:
        gc.enable()
