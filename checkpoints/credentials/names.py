"""Names that announce a credential, and values that look like one rather than like a placeholder or a word."""

import math
import re
from collections import Counter
from functools import lru_cache

from checkpoints.credentials.patterns import compiled

# Where these words stand at the end of a name, its value is the secret; `token_count` and `password_file` are none.
_SECRET_NAME = compiled(
    rb"(?:^|_)(?:pass(?:word|wd|phrase)|pwd|secret|token|api_?key|credential|authorization|bearer"
    rb"|(?:access|account|auth|encryption|master|private|secret|service|shared|signing|storage)_?key)s?$"
)
_HARMLESS_NAME = compiled(
    rb"(?:^|_)(?:bos|cancellation|continuation|csrf|cursor|end|eos|mask|next|pad|page|pagination|previous|start|stop|sync"
    rb"|unk)(?:_page)?_tokens?$"
)
# The same words in encoded data, before what may be a secret: behind a key, a string of eight bytes or a container; in
# a text, a colon or equals sign and eight characters.
NAME_HINT = (
    rb"(?i:(?:pass(?:word|wd|phrase)|pwd|secret|token|credential|authorization|bearer"
    rb"|(?:access|account|api|auth|encryption|master|private|service|shared|signing|storage)[_ -]?key)s?)"
    rb"(?:[\xa8-\xbf\xd9-\xdd\xc4-\xc9\xd4-\xd8\x90-\x9f]"
    rb"|[\"'\\]{0,3}\s{0,3}(?:=>|:=|[:=])\s{0,3}[\"'\\]{0,3}[^\s\"'\\,;&<>(){}]{8})"
)
_PLACEHOLDER = compiled(
    rb"(?i)^(?:[*.x-]+|<.*>|\[.*\]|%.*|\$.*|\{.*\}|(?:your|my|change|example|placeholder|dummy|sample|fake|redacted)\b.*"
    rb"|your.*|change_?me.*|example.*|(?:env|vault|secret|file|arn|https?):.*|/.*)$"
)
_SCHEME = compiled(rb"(?i)^(?:bearer|basic|token)\s+")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_MIN_LENGTH = 8
_MIN_BITS = 2.75  # per character: eight different characters have 3, an English word about 2.5


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Whether a dict key or field name says that its value is a credential: `db_password`, `apiKey`, `X-Auth-Token`."""
    words = _WORD_START.sub("_", name).replace("-", "_").replace(" ", "_").lower().encode(errors="replace")
    return bool(_SECRET_NAME.search(words)) and not _HARMLESS_NAME.search(words)


def is_placeholder(value: bytes) -> bool:
    """Whether a value only stands for a credential: `***`, `<token>`, `${TOKEN}`, `changeme`, `/run/secrets/x`."""
    return bool(_PLACEHOLDER.search(value))


def looks_random(value: bytes) -> bool:
    """Whether a value, under a name that announces a credential, is one: letters and digits mixed, no spaces."""
    value = _SCHEME.sub(b"", value)
    if len(value) < _MIN_LENGTH or any(space in value for space in (b" ", b"\n", b"\t")) or is_placeholder(value):
        return False
    kinds = value.upper() != value.lower(), any(48 <= byte <= 57 for byte in value)
    return all(kinds) and _bits_per_byte(value[:256]) >= _MIN_BITS


def _bits_per_byte(value: bytes) -> float:
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
