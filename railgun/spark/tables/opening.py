"""Finds the log and the schemas that the options name: in a data folder, in one task's folder, or on a broker."""

from pathlib import Path

from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.names import column_name
from railgun.history.task_folder import current_folder
from railgun.messaging.embedded.read_only import ReadOnlyLog
from railgun.messaging.errors import TransportError
from railgun.registry.catalog_log import TOPIC, CatalogLog
from railgun.registry.errors import RegistryError
from railgun.registry.topics import Topics
from railgun.spark.errors import OptionError, PlaceError
from railgun.spark.tables.broker_place import BrokerPlace, broker_settings, cluster_catalog
from railgun.spark.tables.choosing import chosen_partitioner, chosen_stream, defined
from railgun.spark.tables.options import ReadOptions, SourceKind
from railgun.spark.tables.record_log import RecordLog, StreamSchemas
from railgun.spark.tables.reservoir_log import ReservoirRecordLog
from railgun.spark.tables.topic_log import embedded_log
from railgun.task.errors import TaskError

_VERSION_FILE, _STREAMS, _RESERVOIR = "VERSION", "streams", "reservoir"


class FolderPlace:
    """The place that the options name: a data folder (one partitioner of one stream), or one task's folder.

    stream, partitioner: those whose records are read.
    known: the stream's schemas.
    Raises OptionError, PlaceError.
    """

    def __init__(self, options: ReadOptions) -> None:
        if not options.path:
            raise OptionError(
                'no folder is named: .load("data") with the data folder of an engine or of one task; or name a broker: '
                "option broker"
            )
        path = Path(options.path.removeprefix("file://").removeprefix("file:")).absolute()
        self._task: Path | None = None
        self._data: Path | None = path if (path / _VERSION_FILE).is_file() else None
        stream, partitioner = options.stream, options.partitioner
        if self._data is None:
            if not _reservoir(path).is_dir():
                raise PlaceError(
                    f"{path}: it is no data folder (there is no {_VERSION_FILE} in it) and no task's folder (there is "
                    f"no {_RESERVOIR}/ in it)"
                )
            self._task, data = path, path.parents[3] if len(path.parents) > 3 else path
            if (data / _VERSION_FILE).is_file() and path.parents[2].name == _STREAMS:
                self._data = data
                stream, partitioner = path.parents[1].name, path.parent.name
            else:
                partitioner = partitioner or path.parent.name
        self.source = options.source or (SourceKind.LOG if self._task is None else SourceKind.RESERVOIR)
        if self.source is SourceKind.LOG and self._data is None:
            raise OptionError(f"{path}: a task's folder has no log; read it with option source=reservoir")
        self.known = self._known(options.definitions, stream)
        self.partitioner = chosen_partitioner(self.known.stream, partitioner)

    def open(self) -> RecordLog:
        """Open the log of the records. The caller must close it. Raises PlaceError."""
        stream, name = self.known.stream, column_name(self.partitioner)
        if self.source is SourceKind.LOG:
            assert self._data is not None
            return embedded_log(self._data, stream.name, self.partitioner)
        if self._task is not None:
            number = int(self._task.name) if self._task.name.isdigit() else 0
            return ReservoirRecordLog(name, {number: _reservoir(self._task)})
        assert self._data is not None
        below = self._data / _STREAMS / stream.name / name
        folders = {
            each: _reservoir(below / str(each)) for each in range(stream.partitions_of(self.partitioner))
        }
        return ReservoirRecordLog(name, {each: folder for each, folder in folders.items() if folder.is_dir()})

    def _known(self, definitions: str | None, stream: str | None) -> StreamSchemas:
        if definitions is not None:
            return defined(definitions, stream)
        if self._data is None:
            raise OptionError(
                "a task's folder does not say what its events look like; name the file that does: "
                'option("definitions", "definitions.toml")'
            )
        catalog = read_catalog(self._data)
        entry = catalog.streams[chosen_stream(list(catalog.streams), stream, str(self._data))]
        return StreamSchemas(entry.stream, dict(entry.schemas))


def _reservoir(task: Path) -> Path:
    try:
        return current_folder(task) / _RESERVOIR
    except (TaskError, OSError) as error:
        raise PlaceError(str(error)) from error


Place = FolderPlace | BrokerPlace


def place_of(options: ReadOptions) -> Place:
    """Return the place that the options name. Raises OptionError, PlaceError."""
    return FolderPlace(options) if options.broker is None else BrokerPlace(options)


def registered(options: ReadOptions) -> StreamEntry:
    """Return the catalogue's entry of the stream, whatever its partitioners. Raises OptionError, PlaceError."""
    if options.broker is None:
        place, catalog = options.path, read_catalog(Path(options.path).absolute())
    else:
        place = options.broker
        settings = broker_settings(options.broker, options.kafka)
        catalog = cluster_catalog(settings, Topics(options.topic_prefix))
    return catalog.streams[chosen_stream(list(catalog.streams), options.stream, place)]


def read_catalog(data: Path) -> Catalog:
    """Read the catalogue of a data folder, even while an engine has it open. Raises PlaceError."""
    try:
        with ReadOnlyLog(data / "log") as log:
            if TOPIC not in log.topics():
                raise PlaceError(f"{data}: its log has no catalogue: nothing was ever registered there")
            return CatalogLog(log, str(data)).catalog
    except (TransportError, RegistryError, DefinitionError, CatalogError) as error:
        raise PlaceError(str(error)) from error
