"""The backend in this process: the engine, and a server around it."""
