"""The bytes of records and replies, and the compiled code that reads and writes them. FORMAT.md
describes the bytes.
"""
