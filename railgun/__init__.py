"""Railgun: exact sliding-window metrics for every event."""

__version__ = "0.1.0"
