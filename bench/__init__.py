"""Benches and the generator of the events that they run on."""
