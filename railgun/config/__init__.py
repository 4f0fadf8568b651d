"""Configuration: what can be set, and reading it from a file, the environment and the command line."""
