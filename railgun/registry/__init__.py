"""Keeps the catalogue as a log of changes that several processes share, and names the topics."""
