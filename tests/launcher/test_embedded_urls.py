"""Where the settings and `manage.py` find an instance's services."""

from pathlib import Path

import psycopg.conninfo
import pytest
from kombu.utils.url import url_to_parts

from fermata.embedded.instance import CHECKOUT, current_instance
from fermata.embedded.urls import broker_url, database_url, secret_key


@pytest.mark.parametrize("name", ["plain", "with a space", "100%", "Größe", "ab:c@d?e#f&g+h"])
def test_any_home_comes_through_both_urls(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("FERMATA_HOME", f"/srv/{name}")
    parsed = psycopg.conninfo.conninfo_to_dict(database_url())
    assert parsed == {"user": "fermata", "dbname": "fermata", "host": f"/srv/{name}/servers/run/postgres"}
    broker = url_to_parts(broker_url())
    assert (broker.scheme, broker.query) == ("redis+socket", {"virtual_host": "0"})
    assert broker.path == f"srv/{name}/servers/run/valkey.sock"


def test_a_home_without_a_name_is_in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERMATA_HOME", raising=False)
    assert current_instance().home == CHECKOUT / ".fermata"


def test_a_relative_home_is_in_the_checkout_wherever_one_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FERMATA_HOME", "homes/a")
    assert current_instance().home == CHECKOUT / "homes" / "a"


def test_one_home_by_two_names_is_one_instance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "home")
    urls = set()
    for name in ("home", "link"):
        monkeypatch.setenv("FERMATA_HOME", str(tmp_path / name))
        urls.add(database_url())
    assert len(urls) == 1


def test_a_home_that_cannot_be_a_sockets_address_has_its_sockets_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = set()
    for name in ("a" * 90, "b" * 90, "a,b"):
        monkeypatch.setenv("FERMATA_HOME", f"/srv/{name}")
        folders.add(str(current_instance().postgres_socket_folder))
    assert len(folders) == 3
    assert all(len(folder) <= 93 and folder.startswith("/tmp/fermata-") for folder in folders)


def test_the_secret_key_is_the_instances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FERMATA_HOME", str(tmp_path))
    assert secret_key() is None
    (tmp_path / "secret-key").write_text("key\n")
    assert secret_key() == "key"
