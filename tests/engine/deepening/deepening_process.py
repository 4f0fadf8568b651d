"""A process that scores numbered events while a deepening is installed, until it is killed; it says each answer."""

import sys
import threading
import time
from pathlib import Path

from railgun.engine.engine import Engine
from railgun.task.settings import TaskSettings
from tests.engine.scoring_process import event

SETTINGS = TaskSettings(chunk_events=32, segment_bytes=1 << 13, checkpoint_interval_s=0.2)


def main(folder: Path, first: int) -> None:
    with Engine(folder, durability="os", settings=SETTINGS) as engine:
        if engine.deepening("s") is not None:
            threading.Thread(target=engine.deepen, args=("s",), daemon=True).start()
        for number in range(first, sys.maxsize):
            metrics = engine.score("s", event(number))["metrics"]
            sys.stdout.write(f"{number} {metrics['n']} {metrics['total']!r}\n")
            sys.stdout.flush()
            # What follows the log gets the time that is left.
            time.sleep(0.002)
