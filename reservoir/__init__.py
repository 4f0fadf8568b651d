"""The reservoir: event storage in sealed columnar chunks on disk, read by cursors that only move forward in time."""
