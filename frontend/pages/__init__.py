"""What a server answers beside events: streams and metrics, values, the cluster, and who asks."""
