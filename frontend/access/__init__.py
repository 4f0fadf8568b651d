"""Carries out decisions about requests: notes who asks, limits how much they send, and logs who was refused."""
