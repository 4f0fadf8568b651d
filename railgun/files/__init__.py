"""Event files: reading them by suffix, in blocks of bounded size, and writing results."""
