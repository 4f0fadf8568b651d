"""Streams and metrics over HTTP."""
