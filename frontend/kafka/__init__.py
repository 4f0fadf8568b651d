"""The front-end on Kafka: events to the topics of tasks, replies back, the catalogue followed."""
