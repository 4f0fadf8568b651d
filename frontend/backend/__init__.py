"""The protocols of what stands behind the HTTP port: an engine in this process, or a cluster behind a broker."""
