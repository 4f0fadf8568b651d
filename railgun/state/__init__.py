"""The state of entities: rows and pages in memory, all of them in RocksDB, and their checkpoints."""
