"""The routes that the framework serves: streams and metrics, values, the cluster, and the caller's own rights."""
