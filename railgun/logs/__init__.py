"""What the program says about itself while it runs: lines for a terminal, JSON for machines."""
