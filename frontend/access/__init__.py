"""Carries out decisions about requests: notes the caller, limits how much it sends, and logs refusals."""
