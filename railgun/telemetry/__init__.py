"""Counts and times of a process, readings of its tasks, and Prometheus' text of both."""
