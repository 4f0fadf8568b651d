"""Railgun on Spark: logs and reservoirs as tables, backfill, and validation by a second computation.

No other room imports pyspark.
"""

from railgun.spark.tables.source import register

__all__ = ["register"]
