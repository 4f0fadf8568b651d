"""All tasks of a stream in one process: over files without a log, and durable on the embedded log."""
