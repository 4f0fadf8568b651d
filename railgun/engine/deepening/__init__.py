"""Deepening of an engine's streams: a live stream gets older history than its log has. See docs/decisions/0012.

Tasks that are built with the older history (successors) follow the log and take over.
"""
