"""The metric language: grammar, typed syntax tree, errors with a position."""
