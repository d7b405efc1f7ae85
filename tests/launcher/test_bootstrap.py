"""The part that the system's own Python runs."""

import ast
import os
import subprocess
import sys

import pytest

from fermata.embedded.instance import CHECKOUT

BOOTSTRAP = CHECKOUT / "fermata" / "launcher" / "bootstrap.py"


def bootstrap_with(patch: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the bootstrap in a Python where `patch` was executed first."""
    code = f"import platform, runpy, sys; {patch}; runpy.run_path({str(BOOTSTRAP)!r}, run_name='__main__')"
    inherited = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "CELERY_BROKER_URL"}}
    argv = [sys.executable, "-c", code, *arguments]
    return subprocess.run(argv, env={**inherited, **variables}, capture_output=True, text=True, check=False)


def test_it_imports_nothing_but_the_standard_library() -> None:
    tree = ast.parse(BOOTSTRAP.read_text())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_an_old_python_can_read_it() -> None:
    ast.parse(BOOTSTRAP.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize(
    "patch",
    [
        "sys.platform = 'darwin'",
        "platform.machine = lambda: 's390x'",
        "platform.libc_ver = lambda: ('', '')",
    ],
)
def test_a_platform_without_embedded_services_is_told_what_to_set(patch: str) -> None:
    done = bootstrap_with(patch, "-c", "pass")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "DATABASE_URL" in done.stderr
    assert "CELERY_BROKER_URL" in done.stderr


def test_services_of_ones_own_work_on_any_platform() -> None:
    urls = {"DATABASE_URL": "postgres://x/x", "CELERY_BROKER_URL": "amqp://x//"}
    done = bootstrap_with("platform.machine = lambda: 's390x'", "-c", "print('here')", **urls)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("here\n")


def test_an_old_python_is_told_which_one_is_needed() -> None:
    done = bootstrap_with("sys.version_info = (3, 9); import os; os.environ['PATH'] = ''", "-c", "pass")
    assert done.returncode == 1
    assert done.stderr.startswith("Fermata needs Python 3.11 or newer")


def test_a_python_without_its_venv_is_named() -> None:
    patch = (
        "import importlib.util as u, pathlib; find = u.find_spec;"
        "u.find_spec = lambda name: None if name == 'ensurepip' else find(name);"
        "pathlib.Path.exists = lambda path: False"
    )
    done = bootstrap_with(patch, "-c", "pass")
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr
