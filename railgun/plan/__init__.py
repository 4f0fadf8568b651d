"""Makes one shared plan of metrics, and the program that the interpreter runs from the plan."""
