"""The process that measures one workload: `python -m bench.workloads.child NAME SCALE RUNS`."""

import sys

from bench.children import say
from bench.process import end_in_order
from bench.workloads.catalog import WORKLOADS
from bench.workloads.exact import WrongValuesError
from bench.workloads.measuring import NotFullError, measured

if __name__ == "__main__":
    end_in_order()
    name, scale, runs = sys.argv[1:]
    try:
        say({"figures": measured(WORKLOADS[name], float(scale), int(runs))})
    except (WrongValuesError, NotFullError) as error:
        # The process that asked keeps the reason with its figures.
        say({"not_run": str(error)})
