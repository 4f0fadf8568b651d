"""Spark: logs and reservoirs as tables, and the second computation that validates the first.

The only room that imports pyspark.
"""

from railgun.spark.tables.source import register

__all__ = ["register"]
