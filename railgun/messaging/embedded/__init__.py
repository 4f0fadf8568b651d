"""The embedded log: a durable log in one process, in one RocksDB."""
