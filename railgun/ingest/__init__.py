"""From what clients send to records of tasks, and from what tasks answer to replies, whatever the way in."""
