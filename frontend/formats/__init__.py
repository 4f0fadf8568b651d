"""Decodes the records of input topics to events, in JSON, Avro and Protobuf, and asks for their schemas."""
