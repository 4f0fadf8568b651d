"""The measuring process of one workload: says when its windows are full, then measures for every line it reads.

python -m bench.unit_child WORKLOAD SCALE

Other revisions ask it too (bench.compare): they count on these arguments, the lines of JSON and the names in them.
"""

import sys

from bench.children import say
from bench.process import end_in_order
from bench.unit_cases import WORKLOADS
from bench.unit_task import WarmTask


def main(name: str, scale: str) -> None:
    """Serve until there is nothing more to read."""
    end_in_order()
    warm = WarmTask(WORKLOADS[name].scaled(float(scale)))
    try:
        warm.warm_up()
        say({"ready": name})
        for _ in sys.stdin:
            say(warm.measure())
    finally:
        warm.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
