"""Random streams, metrics, logs and expressions: plain data, drawn by a seed or by Hypothesis."""
