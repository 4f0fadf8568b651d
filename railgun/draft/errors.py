"""The error of a sample that no definitions can be drafted from."""


class DraftError(Exception):
    """There is nothing in the sample that a stream could be made of. The message says what to do."""
