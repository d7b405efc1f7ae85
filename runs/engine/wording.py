"""What the engine says about a run, as it may be stored and shown."""

from checkpoints import codec


def storable(text: str) -> str:
    """`text` with `[redacted: rule]` for each credential, and escapes for NUL and lone surrogates."""
    return str(codec.redact(text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()))
