"""Open-loop load: what is sent when is fixed beforehand, and latency counts from when each request was due."""
