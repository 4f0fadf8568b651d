"""Aggregators: their cells in an entity's row, and the kernels that add values, remove them and compute results."""
