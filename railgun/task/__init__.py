"""A task turns one log into replies. It has a reservoir of events, a plan of metrics, and their state."""
