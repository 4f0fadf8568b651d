"""Exact arithmetic in kernels: long integers as arrays of 64-bit words, and doubles rounded once."""
