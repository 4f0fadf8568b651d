"""Rows of entities: in memory by group and entity, loaded, evicted, checkpointed."""
