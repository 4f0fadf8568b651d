"""What is installed from a wheel has all that the tree has: code, configuration, the script of rights, the console."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]
_PLACES = (
    "import railgun, sys; from railgun.demo.payments_run import LIBRARY; print(railgun.__file__, LIBRARY)"
)


def _run(*command: str, at: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_wheel_needs_nothing_of_the_tree(tmp_path: Path) -> None:
    pip = sys.executable, "-m", "pip", "--disable-pip-version-check"
    _run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(ROOT), at=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    environment = tmp_path / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment), at=tmp_path)
    python = environment / "bin" / "python"
    _run(*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel), at=tmp_path)
    packages = Path(
        _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", at=tmp_path).strip()
    )
    # The dependencies are those of the tests. A folder that is named in a .pth file comes behind what is installed, and
    # its own .pth files, which name the tree, count for nothing.
    (packages / "dependencies.pth").write_text(str(Path(msgspec.__file__).parents[1]), encoding="utf-8")

    module, library = _run(str(python), "-c", _PLACES, at=tmp_path).split()
    assert Path(module).is_relative_to(environment)
    shared = environment / "share" / "railgun"
    assert Path(library) == shared / "examples" / "payments.toml"
    for path in (each for each in (ROOT / "config").rglob("*") if each.is_file()):
        copied = shared / path.relative_to(ROOT / "config")
        assert copied.read_bytes() == path.read_bytes()
        assert os.access(copied, os.X_OK) == os.access(path, os.X_OK)
    console = Path("frontend", "pages", "console", "files")
    for path in (ROOT / console).iterdir():
        assert (packages / console / path.name).read_bytes() == path.read_bytes()
    railgun = environment / "bin" / "railgun"
    assert "card_payments_10m" in _run(str(railgun), "explain", str(library), at=tmp_path)
