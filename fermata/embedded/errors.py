"""What can go wrong before a server runs."""


class EmbeddedError(Exception):
    """An embedded server cannot be prepared; the message is for the person at the terminal."""
