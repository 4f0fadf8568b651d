"""Reads event files in blocks of bounded size, in the format that the suffix names, and writes results."""
