"""Semantics as readable scripts: events go in, replies are expected, on whatever executes them."""
