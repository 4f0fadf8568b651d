"""The railgun command and its sub-commands."""
