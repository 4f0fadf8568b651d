"""Aggregators: the cells that an entity row keeps for them, and the kernels that add, remove and answer."""
