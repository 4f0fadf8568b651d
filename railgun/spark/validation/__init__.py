"""Validation: results are computed a second time with Spark's functions, and compared with the recorded replies."""
