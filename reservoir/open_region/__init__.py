"""The open region: accepted rows that no chunk holds yet, and their order."""
