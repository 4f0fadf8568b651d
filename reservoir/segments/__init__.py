"""Sealed chunks on disk: their bytes, their files, the index over them, and opening them again."""
