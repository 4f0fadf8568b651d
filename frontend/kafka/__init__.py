"""A front-end of a cluster on Kafka as a process: events to the topics of their tasks, and replies back."""
