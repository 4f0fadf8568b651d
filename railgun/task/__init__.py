"""A task: one log turned into replies by a reservoir, a plan and their state."""
