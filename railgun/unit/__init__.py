"""Processor units: processes that run tasks, read the topics of these tasks and send their replies."""
