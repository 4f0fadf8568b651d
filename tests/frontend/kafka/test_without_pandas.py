"""A front-end of a cluster starts without pandas, installed or not."""

import subprocess
import sys

_CHILD = """
import sys
import frontend.kafka.serving as serving
from frontend.exchange.warm_up import warm_up
from railgun.cli.main import main

def backend(*arguments, **more):
    warm_up()
    sys.exit(int("pandas" in sys.modules))

serving.listen, serving.KafkaBackend = lambda http: None, backend
sys.exit(main(["frontend"]))
"""


def test_arrow_does_not_import_it() -> None:
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
