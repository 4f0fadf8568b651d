"""From metrics to one shared plan, and from the plan to the program that the interpreter runs."""
