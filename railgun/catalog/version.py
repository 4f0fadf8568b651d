"""The version of the catalogue's entries that this release reads. See railgun/registry/FORMAT.md."""

from typing import Final

CATALOG_VERSION: Final = 2
