"""The errors of `railgun bench`. Each says what to do."""


class MeasuringError(Exception):
    """Base of this package's errors."""


class NoEventsError(MeasuringError):
    """The files have no event, or too few to be repeated."""


class NoSpanError(MeasuringError):
    """All events have one time, so nothing says how much later they should come again."""


class NoRoomError(MeasuringError):
    """The disk has too little free space."""
