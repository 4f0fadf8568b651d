"""What a server answers beside events: pages for streams and metrics, values, the cluster, and who asks."""
