"""The process of a node that speaks for it in the cluster, and that writes the plan while its node leads."""
