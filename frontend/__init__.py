"""The HTTP door: checks what clients send, publishes records and gives back the replies."""
