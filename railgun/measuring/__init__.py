"""Measures the engine on a user's own definitions and events, for `railgun bench`."""
