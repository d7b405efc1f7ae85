"""Credentials in what pages show: masked, wherever the text comes from."""

from checkpoints.credentials import is_secret_name, may_hold_one, redacted


def masked(text: str, name: str = "") -> str:
    """`text`, which goes by `name`, with `[redacted: rule]` in place of each credential."""
    if may_hold_one(text.encode(errors="surrogatepass")) or (name and is_secret_name(name)):
        return redacted(text, name)
    return text
