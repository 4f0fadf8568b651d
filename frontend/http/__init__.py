"""The HTTP port: connections, routes, limits, bodies, errors."""
