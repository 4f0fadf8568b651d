"""Data folders as files that can be checked in: what RocksDB holds is written as JSON, the rest as it is.

So these files are of our own formats alone, whatever RocksDB makes of its files.
"""

import json
import shutil
from pathlib import Path

from rocksdict import Options, Rdict

from railgun.history.manifest import MANIFEST_PLACE, read_manifest, write_manifest
from railgun.state.end_marker import END_MARK

# Keys and values of a database, in hexadecimal, under the name of its folder and this.
DATABASE = ".database.json"
_CURRENT = "CURRENT"
_LOCK = ".lock"


def written_down(data: Path, folder: Path) -> None:
    """Replace `folder` by a closed data folder, portably. Locks are left out, and empty folders."""
    shutil.rmtree(folder, ignore_errors=True)
    databases = [path.parent for path in data.rglob(_CURRENT)]
    for place in databases:
        database = Rdict(str(place), _raw())
        items = {key.hex(): value.hex() for key, value in database.items()}
        database.close()
        target = folder / place.relative_to(data)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(items, indent=0, sort_keys=True)
        target.with_name(target.name + DATABASE).write_text(f"{text}\n", encoding="utf-8")
    for path in data.rglob("*"):
        is_theirs = path.parent in databases and path.name != END_MARK
        if path.is_file() and path.suffix != _LOCK and not is_theirs:
            target = folder / path.relative_to(data)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def brought_back(folder: Path, data: Path) -> Path:
    """Make `data` what was written down in `folder`. Manifests name the files of the databases that are made now."""
    for path in folder.rglob("*"):
        target = data / path.relative_to(folder)
        if not path.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not path.name.endswith(DATABASE):
            shutil.copyfile(path, target)
            continue
        database = Rdict(str(target.with_name(path.name.removesuffix(DATABASE))), _raw())
        for key, value in json.loads(path.read_text(encoding="utf-8")).items():
            database[bytes.fromhex(key)] = bytes.fromhex(value)
        database.close()
    for place in data.rglob(MANIFEST_PLACE):
        manifest = read_manifest(place.parents[1])
        place.unlink()
        write_manifest(place.parents[1], manifest)
    return data


def _raw() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    return options
