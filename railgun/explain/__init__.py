"""Explains what the metrics of a stream share, as text, JSON, a graph or a drawing."""
