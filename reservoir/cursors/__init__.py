"""Edges and fills that move over stored rows, and the decoded chunks that they read."""
