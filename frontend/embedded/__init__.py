"""The service in one process: its backend is an engine of this process."""
