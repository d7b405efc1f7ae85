"""Where one instance of Fermata keeps its things. Nothing here writes."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
LONGEST_SOCKET_FOLDER = 93  # bytes: a socket's whole path must fit into 107, and PostgreSQL adds 14


@dataclass(frozen=True)
class Instance:
    """One `FERMATA_HOME`: an absolute path with its symbolic links resolved."""

    home: Path

    @property
    def lock(self) -> Path:
        return self.home / "lock"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def secret_key(self) -> Path:
        return self.home / "secret-key"

    @property
    def audit_key(self) -> Path:
        """Signs the audit trail; its first use makes it."""
        return self.home / "audit-key"

    @property
    def audit_anchor(self) -> Path:
        return self.home / "audit-anchor"

    @property
    def servers_link(self) -> Path:
        """A folder, or a link to one if the servers' account cannot enter the home (see `folders`)."""
        return self.home / "servers"

    @property
    def servers(self) -> Path:
        return Path(os.path.realpath(self.servers_link))

    @property
    def sockets(self) -> Path:
        """The folder of the servers' sockets: short enough, and without what separates hosts in a URL of libpq's."""
        near = self.servers / "run"
        if len(os.fsencode(near / "postgres")) <= LONGEST_SOCKET_FOLDER and "," not in str(near):
            return near
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path(f"/tmp/fermata-{os.getuid()}-{digest}")  # noqa: S108 (its owner is checked at each start)

    @property
    def postgres_socket_folder(self) -> Path:
        return self.sockets / "postgres"

    @property
    def valkey_socket(self) -> Path:
        return self.sockets / "valkey.sock"


def current_instance() -> Instance:
    """The instance that `FERMATA_HOME` names; `.fermata` in the checkout if it names none."""
    named = os.environ.get("FERMATA_HOME") or ".fermata"
    return Instance(Path(os.path.realpath(CHECKOUT / named)))
