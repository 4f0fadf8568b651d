"""Deepening of one task: it gets older history than its log has. See docs/decisions/0012.

The events that it has accepted are exported. A task that is built from them and the history follows the log, and takes
over.
"""
