"""Writing an answer's body."""

from collections.abc import Mapping
from typing import Any

import msgspec
from rest_framework.renderers import BaseRenderer


def _plain(value: Any) -> Any:
    """For msgspec: lazy and marked strings as what they are."""
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} has no place in an answer")


_encoder = msgspec.json.Encoder(enc_hook=_plain, decimal_format="number")


class JSONRenderer(BaseRenderer):
    """JSON that keeps numbers digit for digit. Text that is JSON already is embedded as `msgspec.Raw`."""

    media_type = "application/json"
    format = "json"
    charset = None  # JSON is UTF-8

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else _encoder.encode(data)
