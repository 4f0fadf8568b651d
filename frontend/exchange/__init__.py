"""Sends events and value queries to the topics of their tasks, and gathers the answers."""
