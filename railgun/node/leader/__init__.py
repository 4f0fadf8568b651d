"""The process that reports a node to the cluster, and writes the cluster's plan while its node leads."""
