"""The host of tasks, for engines and units alike: opens, recovers, feeds, checkpoints and replaces them."""
