"""The route that shows the dead letters of a stream."""
