"""One event after a long silence: more rows lose events at once than fit into memory, and nothing is wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from railgun.catalog.changes import AddMetric, PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.task.processor import TaskIdentity
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from reservoir.files import DiskFiles
from tests.task.player import TINY

_ENTITIES, _WINDOWS = 1_500, 40
_STREAM = """
[streams.s]
time = "ts"
id = "id"
[streams.s.fields]
id = "string"
ts = "timestamp"
k = "string"
d = "double"
"""
_METRIC = '[[metrics]]\nsql = "SELECT sum(d) AS m{n}, count(*) AS c{n} FROM s GROUP BY k OVER SLIDING {n} SECONDS"\n'


def test_rows_that_do_not_fit_are_emptied_in_slices(tmp_path: Path) -> None:
    definitions = parse_definitions(_STREAM + "".join(_METRIC.format(n=n) for n in range(1, _WINDOWS + 1)))
    settings = replace(TINY, crossings_max=1 << 18, chunk_cache_bytes=1 << 22)
    identity = TaskIdentity("s", "*", 0, bytes(16))
    task = open_task(tmp_path / "t", identity, DiskFiles(), lambda first, end: (), settings)
    stream = definitions.streams["s"]
    changes = [PutStream(1, stream, 1), *(AddMetric(2 + i, m) for i, m in enumerate(definitions.metrics))]
    records = [encode_control(change_to_json(change)) for change in changes]
    records += [encode_event(1, f"e{i}", i, [f"e{i}", i, f"k{i}", 0.5]) for i in range(_ENTITIES)]
    later = 86_400_000
    records.append(encode_event(1, "last", later, ["last", later, "k7", 2.0]))
    answers: list[dict[str, Any]] = []

    def note(found: Replies) -> None:
        answers.append(found.metrics(found.n - 1))

    task.process(Records.of(records[:-1]), 0, note)
    task.process(Records.of(records[-1:]), len(records) - 1, note)
    try:
        assert task.table.stats().resident < _ENTITIES, "the rows all fit: this shows nothing"
        assert all(answers[-1][f"m{n}"] == 2.0 and answers[-1][f"c{n}"] == 1 for n in range(1, _WINDOWS + 1))
    finally:
        task.close()
