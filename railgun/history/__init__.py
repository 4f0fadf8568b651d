"""History that lies before a task's log: its files, how it is built, and in which folder a task with
history lives.
"""
