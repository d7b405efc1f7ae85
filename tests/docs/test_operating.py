"""docs/operating.md names what is there, all of it, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.support.processes import ROOT

PAGE = (ROOT / "docs" / "operating.md").read_text()
SETTINGS = (ROOT / "fermata" / "settings.py").read_text()


def described() -> list[str]:
    """The variables of the page's table."""
    return re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE)


def test_every_variable_is_described_once() -> None:
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', SETTINGS))
    assert len(read) > 30
    assert sorted(described()) == sorted(read)


@pytest.mark.parametrize("variable", ["FERMATA_HOME", "FERMATA_WORKER_POOL", "FERMATA_WORKER_CONCURRENCY"])
def test_the_launchers_variables_are_named(variable: str) -> None:
    assert f"`{variable}`" in PAGE
    sources = (ROOT / "fermata").rglob("*.py")
    assert any(f'"{variable}"' in source.read_text() for source in sources)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_every_command_that_the_docs_name_exists(page: Path) -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", page.read_text()))
    assert named <= set(get_commands())


def test_what_the_log_says_is_what_the_page_quotes() -> None:
    table = PAGE.partition("| in the log |")[2].partition("\n\n")[0]
    quoted = re.findall(r"`([^`]+)`", "\n".join(line.split("|")[1] for line in table.splitlines()[2:]))
    assert len(quoted) > 5
    code = "\n".join(source.read_text() for source in (ROOT / "runs").rglob("*.py"))
    assert [text for text in quoted if text not in code] == []
