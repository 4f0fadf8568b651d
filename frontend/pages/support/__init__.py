"""The support bundle: one download that says how a server stands, for those who look for a fault."""
