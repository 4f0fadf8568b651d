"""Puts history before a stream's log: reads, checks and sorts it, and builds tasks of it with the engine's own code."""
