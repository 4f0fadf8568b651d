"""The railgun command."""
