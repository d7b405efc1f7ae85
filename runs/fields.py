"""Serializer fields that take a value as it is meant, or refuse it: nothing is coerced."""

from datetime import datetime
from typing import Any

import msgspec
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


class Text(serializers.CharField):
    """A string, kept to the last space. Numbers and booleans are not strings."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Choice(serializers.ChoiceField):
    """One of the words, letter for letter."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A whole number, written as one."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    """true or false, and no other way to say so."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Moment(serializers.DateTimeField):
    """RFC 3339 with its offset. A time without one could be anybody's, and is refused."""

    default_error_messages = {
        "naive": "Has no UTC offset: write 2026-10-25T10:00:00Z or 2026-10-25T12:00:00+02:00.",
        "not_rfc3339": "Is not a time as RFC 3339 writes it.",
    }

    def to_internal_value(self, value: Any) -> datetime:
        try:
            moment = parse_datetime(value) if isinstance(value, str) else None
        except ValueError:
            moment = None
        if moment is None:
            self.fail("not_rfc3339")
        if moment.tzinfo is None:
            self.fail("naive")
        return super().to_internal_value(moment)


@extend_schema_field(OpenApiTypes.OBJECT)
class Object(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """A JSON object with anything in it."""

    default_error_messages = {"not_object": "Must be an object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_object")
        return data

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


@extend_schema_field({"type": "array", "items": {}})
class Array(serializers.Field[list[Any], Any, list[Any], Any]):
    """A JSON array with anything in it."""

    default_error_messages = {"not_array": "Must be an array."}

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_array")
        return data

    def to_representation(self, value: list[Any]) -> list[Any]:
        return value


@extend_schema_field(OpenApiTypes.ANY)
class Anything(serializers.Field[Any, Any, Any, Any]):
    """Any JSON value."""

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(OpenApiTypes.ANY)
class JSONText(serializers.Field[Any, Any, msgspec.Raw, str]):
    """Stored JSON text, sent as it is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, **options)

    def to_representation(self, value: str) -> msgspec.Raw:
        return msgspec.Raw(value.encode())


class Strict(serializers.Serializer[Any]):
    """A body in which a field that nobody knows is an error: a misspelt option must not be ignored."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = (
            {name: ["No such field."] for name in data if name not in self.fields} if isinstance(data, dict) else {}
        )
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if isinstance(error.detail, dict):
                raise serializers.ValidationError({**error.detail, **unknown}) from error
            raise
        if unknown:
            raise serializers.ValidationError(unknown)
        return value
