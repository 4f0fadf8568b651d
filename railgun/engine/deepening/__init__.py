"""Deepening of an engine's streams: begun, kept over restarts, installed by successors that take over, or given up."""
