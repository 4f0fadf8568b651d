"""Results computed a second time with Spark's functions, and compared with what was answered."""
