"""Drafts a definitions file from a sample of events. Does no input or output, and reads no clock."""
