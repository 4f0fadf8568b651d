"""A small client of the HTTP interface: what the commands and the demo talk to a server with."""
