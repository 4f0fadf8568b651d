"""The embedded log: a durable log of one process, kept in one RocksDB."""
