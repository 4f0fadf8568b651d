"""Decides, from what nodes tell one another, where copies of tasks are and which of them answer. Does no I/O."""
