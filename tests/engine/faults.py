"""What a test finds wrong, so that it can also show that a planted mistake is found."""


class Faults(list[str]):
    """What is not as it has to be."""

    def expect(self, what: str, found: object, right: object) -> None:
        """Note what was found if it is not right."""
        if found != right:
            self.append(f"{what}: {found!r}, not {right!r}")
