"""The script for spark-submit. It runs the commands that use Spark on the cluster that spark-submit names.

spark-submit --master URL railgun/spark_submit.py validate definitions.toml events.parquet --out scores.parquet
"""

import os
import sys

# A script's own folder comes first on the path. This one has rooms whose names must not hide other packages.
sys.path[:] = [
    place for place in sys.path if os.path.abspath(place) != os.path.dirname(os.path.abspath(__file__))
]

from railgun.cli.backfill import BACKFILL  # noqa: E402 - the path had to be set right before
from railgun.cli.main import main  # noqa: E402 - the path had to be set right before
from railgun.cli.validate import VALIDATE  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(commands=(VALIDATE, BACKFILL)))
