"""Kafka as the log, through the library librdkafka."""
