"""The program's own log while it runs: lines for a terminal, JSON for machines."""
