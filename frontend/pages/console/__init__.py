"""The console: a page for people who watch the service. It asks the public routes alone."""
