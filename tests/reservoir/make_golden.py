"""Writes the golden files of the present format version: run once per version, then leave them alone.

python -m tests.reservoir.make_golden
"""

import json
from pathlib import Path

from reservoir.files import DiskFiles
from reservoir.reservoir import Settings
from reservoir.segments.format import VERSION
from tests.reservoir.event_log import ALL_COLUMNS, AMOUNT
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.log_strategies import seeded_log

GOLDEN = Path(__file__).parent / "golden"
SETTINGS = Settings(b"golden-stream-01", chunk_events=8, segment_bytes=3_000)


def main() -> None:
    """Two segments, the hot columns changing on the way, and what is in them as JSON."""
    folder = GOLDEN / f"v{VERSION}"
    log = seeded_log(2026, 90, name_max=4)
    driver = LogDriver(folder, log, SETTINGS, DiskFiles())
    driver.set_hot(ALL_COLUMNS)
    driver.run_all_until(30, [30])
    driver.set_hot((AMOUNT,))
    driver.run_all([30])
    length = driver.reservoir.sync(driver.reservoir.chunks)
    sealed = [int(seq) for rows in list(driver.reservoir.scan())[: length.chunks] for seq in rows.seq]
    driver.reservoir.close()
    rows = [
        {
            "seq": seq,
            "time": log.records[seq].time,
            "id": log.records[seq].id,
            "payload": log.records[seq].payload.decode(),
            "amount": log.records[seq].amount,
            "name": log.records[seq].name,
            "card": log.records[seq].card,
        }
        for seq in sealed
    ]
    (folder / "expected.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
