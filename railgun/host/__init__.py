"""Hosts of tasks, for engines and units alike. A host opens, recovers, feeds, checkpoints and replaces its task."""
