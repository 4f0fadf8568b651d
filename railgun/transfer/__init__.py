"""The process of a node that serves snapshots of its tasks to other nodes, and fetches snapshots from them."""
