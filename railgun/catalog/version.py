"""The version of the catalogue's entries that this release reads. See railgun/registry/FORMAT.md."""

from typing import Final

FIRST: Final = 1
"""The version of entries that say nothing which a release before would have to know."""
WITH_PLACES: Final = 2
"""That of entries in which fields have paths or units."""
WITH_COMPUTED: Final = 3
"""That of entries in which a stream has computed fields."""
WITH_OUTPUT: Final = 4
"""That of entries in which a stream says where its replies go."""
CATALOG_VERSION: Final = WITH_OUTPUT
