"""A year of real departures scored, shown as it happens, and a sample of it checked by brute force."""
