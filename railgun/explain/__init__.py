"""What the metrics of a stream share, described: as text, JSON, a graph or a drawing."""
