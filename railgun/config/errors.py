"""What can be wrong with a configuration: the place, what is wrong, what may be meant."""


class ConfigError(ValueError):
    """A configuration that cannot be used.

    place: where it was set, as in "railgun.toml: http.port", "RAILGUN_HTTP__PORT" or "--http".
    message: one sentence with the remedy, without the place.
    """

    def __init__(self, place: str, message: str) -> None:
        self.place = place
        self.message = message
        super().__init__(place, message)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"
