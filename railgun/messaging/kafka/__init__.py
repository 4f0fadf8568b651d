"""Kafka as the log, by librdkafka."""
