"""The compiled loop that runs programs over batches of events."""
