"""The HTTP server: checks what clients send, publishes records and gives back the replies."""
