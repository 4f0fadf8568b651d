"""A demo: scores a year of real departures, shows it as it happens, and checks a sample of it by brute force."""
