"""The version of the catalogue's entries that this release reads. See railgun/registry/FORMAT.md."""

from typing import Final

FIRST: Final = 1
"""The version of entries that say nothing which a release before would have to know."""
WITH_PLACES: Final = 2
"""That of entries in which fields have paths or units."""
WITH_COMPUTED: Final = 3
"""That of entries in which a stream has computed fields."""
WITH_TOPICS: Final = 4
"""That of entries which say from which topics a stream's events come, how records are read, or where replies go."""
WITH_MAPPINGS: Final = 5
"""That of entries which change where events have a stream's fields, what numbers of times count, or which records are
taken."""
CATALOG_VERSION: Final = WITH_MAPPINGS
