"""A unit that does not wait for a broker for long: `python -m tests.unit.quick_unit` in the place of `railgun.unit`."""

import dataclasses
import sys

from railgun.node.ending import DEADLINES
from railgun.unit.__main__ import main

QUICK = dataclasses.replace(DEADLINES, acknowledged_s=1.0, closed_s=0.5)

if __name__ == "__main__":
    sys.exit(main(deadlines=QUICK))
