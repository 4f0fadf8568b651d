"""Turns what clients send into records of tasks, and the answers of tasks into replies, for every way in."""
