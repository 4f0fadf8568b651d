"""The commands and tables that run on Spark: logs and reservoirs as tables, backfill, validation by a second
computation.

No other room imports pyspark.
"""

from railgun.spark.tables.source import register

__all__ = ["register"]
