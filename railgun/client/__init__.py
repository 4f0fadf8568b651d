"""The clients of a server over HTTP, `railgun.Client` and `railgun.AsyncClient`: for programs, and for commands
that talk to a server.
"""
