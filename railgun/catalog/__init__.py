"""What is registered: streams, schemas and metrics, as a log of changes."""
