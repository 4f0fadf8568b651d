"""The registered streams, schemas and metrics, and the log of changes that they result from."""
