"""Making the folders that the servers keep their files in."""

import os
import stat
import tempfile
from pathlib import Path

from fermata.embedded.account import Account
from fermata.embedded.errors import EmbeddedError
from fermata.embedded.instance import Instance

FOR_ROOT = Path("/var/lib/fermata")


def make_folders(instance: Instance, account: Account | None) -> None:
    """Make the servers' folder and its sockets' folder; both may exist already.

    No permission of a folder above them is ever changed. If `account` cannot enter the home (root's own
    home is usually closed), the servers' folder is a new one under /var/lib/fermata with a link to it in
    the home. The link is what says where the data is: permissions that change later do not make an instance
    lose its database.
    """
    if not instance.servers_link.exists():
        if account and not account.can_enter(instance.home):
            FOR_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
            elsewhere = Path(tempfile.mkdtemp(prefix="instance-", dir=FOR_ROOT))
            elsewhere.chmod(0o711)
            instance.servers_link.unlink(missing_ok=True)
            instance.servers_link.symlink_to(elsewhere)
        else:
            own_folder(instance.servers_link, mode=0o711)
    own_folder(instance.sockets, mode=0o711)


def own_folder(path: Path, *, mode: int, account: Account | None = None) -> None:
    """Make `path` a folder of ours, or of `account`'s. EmbeddedError if somebody else was there first."""
    try:
        path.mkdir(mode=mode)
        path.chmod(mode)  # whatever the umask took away
    except FileExistsError:
        pass
    owners = {os.geteuid(), account.uid if account else os.geteuid()}
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
        raise EmbeddedError(f"{path} belongs to somebody else or is not a folder; move it away.")
    if account and found.st_uid != account.uid:
        os.chown(path, account.uid, account.gid)
