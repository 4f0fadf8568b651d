"""For spark-submit: the commands that run on Spark, on the cluster that it names.

spark-submit --master URL railgun/cli/spark_submit.py validate definitions.toml events.parquet --out scores.parquet
"""

import sys

from railgun.cli.main import main
from railgun.cli.validate import VALIDATE

if __name__ == "__main__":
    sys.exit(main(commands=(VALIDATE,)))
