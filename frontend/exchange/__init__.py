"""Events out to the topics of their tasks, and answers back."""
