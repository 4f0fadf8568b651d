"""What forks Spark's Python workers, with all loaded that they need: each would load it anew, for seconds."""

import importlib

from pyspark.daemon import manager

_LOADED = (
    "pandas",
    "pyspark.sql.conversion",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.worker",
    "railgun.spark.backfill.build",
    "railgun.spark.backfill.deepening_cluster",
    "railgun.spark.tables.source",
    "railgun.spark.validation.validate_run",
    "railgun.spark.validation.validate_service",
)

if __name__ == "__main__":
    for name in _LOADED:
        importlib.import_module(name)
    manager()
