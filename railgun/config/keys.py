"""The keys there are, by their full names, and the names of their variables in the environment."""

from dataclasses import dataclass, fields, is_dataclass

from railgun.config.kinds import Kind
from railgun.config.settings import Settings

ENVIRONMENT_PREFIX = "RAILGUN_"


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `section.name`."""

    section: str
    name: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """Its name in the environment, as in RAILGUN_HTTP__PORT."""
        return f"{ENVIRONMENT_PREFIX}{self.section.upper()}__{self.name.upper()}"


def _keys() -> dict[str, Key]:
    defaults = Settings()
    found = [
        Key(section.name, each.name, each.metadata["kind"])
        for section in fields(Settings)
        if is_dataclass(getattr(defaults, section.name))
        for each in fields(getattr(defaults, section.name))
    ]
    return {str(key): key for key in found}


KEYS = _keys()
"""By full name, in the order of the sections."""
PASSED_THROUGH = "kafka"
"""The section whose keys are librdkafka's."""
SECTIONS = tuple(section.name for section in fields(Settings) if section.name != PASSED_THROUGH)
