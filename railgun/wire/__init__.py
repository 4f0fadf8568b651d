"""The bytes of records and replies, and the compiled code that reads and writes them."""
