"""Where the time of an event goes: `python -m bench.stages`."""
