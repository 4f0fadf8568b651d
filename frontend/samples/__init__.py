"""The last events of each stream with their replies: rings in the memory of a front-end, for people who look."""
