"""Processor units: processes that own tasks, read their topics and send their replies."""
