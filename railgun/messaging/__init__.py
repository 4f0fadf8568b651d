"""Durable logs behind one protocol, Transport: on Kafka, or in a RocksDB of this process."""
