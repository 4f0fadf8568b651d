"""What nodes tell one another about copies of tasks, and what follows from it, without input or output."""
