"""The cluster over HTTP."""
