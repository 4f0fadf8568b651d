"""Whether the kernels of this process are checked ones (`checked`), in a module that loads nothing."""

import os
from typing import Final

IS_CHECKED: Final = os.environ.get("RAILGUN_CHECKED", "") not in ("", "0")
