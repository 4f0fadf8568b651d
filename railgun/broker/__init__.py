"""Runs a local Kafka broker for development and tests: Kafka's own artifacts, one process, on loopback."""
