"""Open-loop load: a schedule fixes when each request is due, and its latency counts from then."""
