"""Values without an event over HTTP."""
