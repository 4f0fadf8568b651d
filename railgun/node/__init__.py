"""A node: the process that supervises units, what all its processes share, and its part in the cluster."""
