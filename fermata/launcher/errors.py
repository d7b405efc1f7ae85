"""Why the launcher gives up."""


class LauncherError(Exception):
    """The message is for the person at the terminal: what is wrong, and what to do."""


class Stopped(Exception):
    """Somebody asked for the end (Ctrl-C, SIGTERM, or the parent is gone). Not an error."""
