"""Tells whether the kernels of this process are checked ones (`checked`). This module imports nothing large."""

import os
from typing import Final

IS_CHECKED: Final = os.environ.get("RAILGUN_CHECKED", "") not in ("", "0")
