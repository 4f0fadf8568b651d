"""Kafka as source and sink: events from a stream's input topic, replies to its output topic."""
