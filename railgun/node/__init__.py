"""A node without its units: the supervisor, the parts that its processes share, and its part in the group of nodes."""
