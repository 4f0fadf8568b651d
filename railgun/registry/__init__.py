"""The catalogue as a log of changes that several processes share, and the names of topics."""
