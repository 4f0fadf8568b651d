"""The last events of a stream, over HTTP."""
