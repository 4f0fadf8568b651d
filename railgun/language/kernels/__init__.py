"""The compiled evaluator of expression programs: one file per family of operations."""
