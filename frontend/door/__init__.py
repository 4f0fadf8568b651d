"""Kafka as the door: events from a stream's input topic, replies to its output, the unusable to a topic for that."""
