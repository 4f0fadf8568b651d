"""Names the packages that the base distribution lacks, and says what to install if one of them is needed."""

from collections.abc import Iterator
from contextlib import contextmanager

# The modules of the extra `engine`; `google` is that of protobuf. A test compares them with pyproject.toml.
ENGINE_MODULES = frozenset(
    {
        "confluent_kafka",
        "cryptography",
        "fastapi",
        "fastavro",
        "google",
        "httptools",
        "llvmlite",
        "numba",
        "numpy",
        "prometheus_client",
        "pyarrow",
        "rocksdict",
        "uvicorn",
        "uvloop",
    }
)


class EngineMissingError(ImportError):
    """Something needs the engine, which is not installed. The message says how to install it."""


@contextmanager
def needing_engine(what: str) -> Iterator[None]:
    """Raise EngineMissingError that says what to install if a module of the engine is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ENGINE_MODULES:
            raise
        raise EngineMissingError(
            f"{what} needs the engine, and {missing} is not installed: pip install '.[engine]' in Railgun's folder",
            name=missing,
        ) from error
