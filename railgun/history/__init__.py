"""History that lies before a task's log: its files, how it is built, and where a task with it is."""
