"""A node without its units: the supervisor, what its processes share, and its part in the group of nodes."""
