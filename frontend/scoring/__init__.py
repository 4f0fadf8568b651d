"""Scoring, between requests and a backend: its protocol, the thread that scores, and waiting for replies."""
