"""Who the servers run as. PostgreSQL refuses to run as root, so root lends it an unprivileged account."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from fermata.embedded.errors import EmbeddedError

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    def can_enter(self, folder: Path) -> bool:
        """Whether the account may pass through `folder` and all folders above it."""
        return all(parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents))


def server_account(data: Path) -> Account | None:
    """The account for the server whose files are in `data`: their owner, if they exist. None if it is ours.

    Raises EmbeddedError if root finds no account to lend.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat().st_uid) != 0:
        return _account(pwd.getpwuid(owner))
    for name in CANDIDATES:
        try:
            return _account(pwd.getpwnam(name))
        except KeyError:
            continue
    raise EmbeddedError(
        "PostgreSQL does not run as root, and this system has no account named " + " or ".join(CANDIDATES) + "."
    )


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
