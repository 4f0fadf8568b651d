"""`python -m tests.simulator`: run many seeds, or one again."""

import argparse
import logging
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.simulator.seeds import Outcome, run_seed
from tests.simulator.simulation import Broken
from tests.temporary import begin_run, end_run


def main() -> int:
    """0: every seed kept all promises; 1: some did not."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulator", description="Simulate clusters with faults."
    )
    parser.add_argument("--seed", type=int, metavar="N", help="run this one alone")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first seed (default: 0)")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="how many seeds (default: 100)")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="how many at once (default: 2)")
    options = parser.parse_args()
    seeds = (
        [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    )
    began_s, failed = time.monotonic(), 0
    begin_run()
    if len(seeds) > 1:
        logging.disable(logging.CRITICAL)
    with ProcessPoolExecutor(options.processes) as pool:
        running = [pool.submit(_one, seed) for seed in seeds]
        for done in as_completed(running):
            outcome = done.result()
            if isinstance(outcome, str):
                failed += 1
                print(outcome, flush=True)
            elif len(seeds) == 1:
                print(outcome)
    end_run()
    took_s = time.monotonic() - began_s
    print(f"{len(seeds)} seeds, {failed} failed; {len(seeds) / took_s * 3600:,.0f} an hour")
    return 1 if failed else 0


def _one(seed: int) -> Outcome | str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run_seed(Path(folder, "cluster"), seed)
        except Broken as broken:
            return str(broken)
        except Exception:  # noqa: BLE001 - the other seeds are run too
            return f"seed {seed}: {traceback.format_exc()}"


if __name__ == "__main__":
    sys.exit(main())
