"""What went wrong in a worker, as one line instead of two stacks."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from railgun.spark.errors import SparkSideError

_OWN_ERROR = re.compile(r"((?:railgun|reservoir)(?:\.\w+)+Error): ([^\n]+)")


@contextmanager
def own_errors(kind: type[SparkSideError]) -> Iterator[None]:
    """Raise an error of this project that came up in a worker as one of this kind, with its line."""
    try:
        yield
    except PySparkException as error:
        found = _OWN_ERROR.findall(str(error))
        if found:
            raise kind(found[-1][1]) from error
        raise
