"""Searches for the least number with which something is possible."""

from collections.abc import Callable


def try_least(number: int, is_enough: Callable[[int], bool]) -> None:
    """Try numbers, and the least one that is enough last. What is enough for a number is for each greater one.

    number: none that is less is enough. In most cases it is itself, and nothing else is tried.
    """
    if is_enough(number):
        return
    too_few, step = number, 1
    while not is_enough(too_few + step):
        too_few, step = too_few + step, 2 * step
    enough = tried = too_few + step
    while enough - too_few > 1:
        tried = (too_few + enough) // 2
        if is_enough(tried):
            enough = tried
        else:
            too_few = tried
    if tried != enough:
        is_enough(enough)
