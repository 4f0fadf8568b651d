"""Runs all tasks of a stream in one process: over files without a log, or durably on the embedded log."""
