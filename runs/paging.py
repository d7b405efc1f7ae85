"""Lists: newest first, in keyset pages that stay right while rows arrive."""

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

Row = TypeVar("Row", bound=Model)


class InvalidQuery(ValidationError):
    """The address asks for something that cannot be; the keys are names of parameters."""


@extend_schema_field(OpenApiTypes.STR)
class CursorField(serializers.Field[Any, str, str, Any]):
    """Where the last page ended: the time and the id of its last row, opaque to clients."""

    def to_internal_value(self, data: str) -> tuple[datetime, UUID]:
        try:
            at, _, key = base64.urlsafe_b64decode(data.encode()).decode().partition(" ")
            return datetime.fromisoformat(at), UUID(key)
        except (binascii.Error, ValueError) as error:
            raise serializers.ValidationError("Not a cursor that this service gave out.") from error

    def to_representation(self, value: tuple[datetime, UUID]) -> str:
        return base64.urlsafe_b64encode(f"{value[0].isoformat()} {value[1]}".encode()).decode()


class ListQuery(serializers.Serializer[Any]):
    """The parameters of every list. Subclasses add filters; a parameter that nobody knows is refused."""

    limit = serializers.IntegerField(min_value=1, max_value=200, default=50)
    cursor = CursorField(required=False)

    def filters(self) -> dict[str, Any]:
        """What to filter by: a field's `source` is the lookup."""
        return {name: value for name, value in self.validated_data.items() if name not in ("limit", "cursor")}


def page_of(kind: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """The shape of a list, for the OpenAPI document."""
    name = kind.__name__.removesuffix("Serializer")
    fields = {"results": kind(many=True), "next": serializers.URLField(allow_null=True)}
    return inline_serializer(f"{name}Page", fields)


def read_query(kind: type[serializers.Serializer[Any]], request: Request) -> Any:
    """The validated parameters of the address. Raises `InvalidQuery`, also for an unknown or repeated parameter."""
    query = kind(data=request.query_params.dict())
    wrong: dict[str, Any] = {
        name: ["Given more than once."] for name, values in request.query_params.lists() if len(values) > 1
    }
    wrong |= {name: ["No such parameter."] for name in request.query_params if name not in query.fields}
    if not query.is_valid():
        wrong = {**query.errors, **wrong}
    if wrong:
        raise InvalidQuery(wrong)
    return query


def page(
    request: Request, parts: Sequence[QuerySet[Row]], query: ListQuery, shape: serializers.ModelSerializer[Row]
) -> dict[str, Any]:
    """`{"results": [...], "next": URL or null}` of the rows of all `parts`, as `newest` has them.

    One `shape` shows all of them: a serializer for each row copies all of its fields, in cycles.
    """
    limit = query.validated_data["limit"]
    found: list[Any] = newest(parts, query.validated_data.get("cursor"), size=limit + 1)
    following = None
    if len(found) > limit:
        last = found[limit - 1]
        following = next_url(request, cursor=CursorField().to_representation((last.created_at, last.pk)))
    return {"results": [shape.to_representation(row) for row in found[:limit]], "next": following}


def newest(parts: Sequence[QuerySet[Row]], cursor: tuple[datetime, UUID] | None, *, size: int) -> list[Row]:
    """The `size` newest rows of all parts together, after the cursor. Rows have `created_at` and a UUID `pk`.

    What is in several teams comes in parts, for an index has its rows in order only within a team.
    """
    if cursor is not None:
        at, key = cursor
        # The first condition says nothing new, and lets PostgreSQL begin in the index where the last page ended.
        parts = [part.filter(created_at__lte=at).filter(Q(created_at__lt=at) | Q(pk__lt=key)) for part in parts]
    found = [row for part in parts for row in part.order_by("-created_at", "-pk")[:size]]
    return sorted(found, key=attrgetter("created_at", "pk"), reverse=True)[:size]


def next_url(request: Request, **mark: str | int) -> str:
    """This list's address with another place to begin."""
    return request.build_absolute_uri(f"{request.path}?{urlencode({**request.query_params.dict(), **mark})}")
