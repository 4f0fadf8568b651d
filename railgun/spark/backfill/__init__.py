"""History put before a stream's log: read, checked, sorted, and built into tasks by the engine's own code."""
