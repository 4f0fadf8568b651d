"""Many changes at once wait for each other, and keep nobody out who only looks."""

import asyncio
from pathlib import Path

from frontend.embedded.backend import EmbeddedBackend
from railgun.engine.engine import Engine
from railgun.registry.origin import UNNAMED

_CHANGES = 64
_STREAM = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["k"]
[streams.s.fields]
id = "string"
ts = "timestamp"
k = "string"
"""


def test_who_only_looks_is_answered_before_changes_that_wait(tmp_path: Path) -> None:
    async def made_by_then() -> tuple[int, int]:
        backend = EmbeddedBackend(lambda: Engine(tmp_path / "data", durability="os"))
        await backend.start()
        try:
            await asyncio.to_thread(_applied, backend)
            sql = "SELECT count(*) AS n{0} FROM s GROUP BY k OVER SLIDING {0} MINUTES"
            changes = [
                asyncio.create_task(backend.catalogue.add_metrics("s", sql.format(number), UNNAMED))
                for number in range(1, _CHANGES + 1)
            ]
            await asyncio.sleep(0)
            await backend.catalogue.streams()
            done = sum(change.done() for change in changes)
            await asyncio.gather(*changes)
            return done, len(await backend.catalogue.metrics("s"))
        finally:
            await backend.close()

    done, made = asyncio.run(made_by_then())
    assert made == _CHANGES
    assert done < _CHANGES // 4, "it waited with the changes"


def _applied(backend: EmbeddedBackend) -> None:
    assert backend.running.engine is not None
    backend.running.engine.apply(_STREAM)
    backend.running.refresh()
