"""`python -m railgun`: the same as the railgun command."""

import sys

from railgun.cli.main import main

sys.exit(main())
