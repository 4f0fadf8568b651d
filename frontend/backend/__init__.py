"""What stands behind the HTTP port, as protocols: an engine in this process, or a cluster behind a broker."""
