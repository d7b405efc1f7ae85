"""Reading a request's body."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from runs import strictjson


@dataclass
class BodyTooLarge(Exception):
    limit: int

    def __str__(self) -> str:
        return f"the request's body is larger than {self.limit} bytes"


class StrictJSONParser(BaseParser):
    """JSON by the rules of `runs.strictjson`; fractions arrive as `Decimal`.

    Raises `strictjson.NotStrictJSON` with the places, and `BodyTooLarge` without reading on.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge(limit)
        return strictjson.loads(body)
