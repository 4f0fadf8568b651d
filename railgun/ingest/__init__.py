"""Turns events of clients into records of tasks, and answers of tasks into replies: HTTP, Kafka, Python and Spark."""
