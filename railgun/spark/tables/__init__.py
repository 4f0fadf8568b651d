"""Reads what Railgun stores as tables of Spark: logs on a broker or in a folder, and reservoirs."""
