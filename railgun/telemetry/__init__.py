"""What a process says of itself: counts and times noted per batch, readings of its tasks, Prometheus' text of both."""
