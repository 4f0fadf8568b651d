"""Logs behind the Transport protocol."""
