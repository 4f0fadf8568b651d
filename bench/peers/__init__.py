"""Other engines on the work of this one: the same events, windows and number of events held, in a process each."""
