"""Deepening of one task: what it has accepted is exported, and the task that is built of it follows and takes over."""
