"""Where the current instance's servers are, from `FERMATA_HOME` alone; they need not be running."""

from urllib.parse import quote

from fermata.embedded.instance import current_instance


def database_url() -> str:
    """The embedded PostgreSQL: `postgres://fermata@<socket folder, percent-encoded>/fermata`."""
    folder = quote(str(current_instance().postgres_socket_folder), safe="")
    return f"postgres://fermata@{folder}/fermata"


def broker_url() -> str:
    """The embedded Valkey, as Celery wants it: `redis+socket:///path/valkey.sock?virtual_host=0`."""
    return f"redis+socket://{quote(str(current_instance().valkey_socket))}?virtual_host=0"


def secret_key() -> str | None:
    """The key that the instance's first start made; None before that."""
    try:
        return current_instance().secret_key.read_text().strip() or None
    except FileNotFoundError:
        return None
