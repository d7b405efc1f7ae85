"""What the OpenAPI document says beyond the views: how to sign in, and that every error is a problem."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema as SpectacularAutoSchema
from rest_framework import serializers

from fermata.problems import CONTENT_TYPE


class FindingSerializer(serializers.Serializer[Any]):
    """One thing that is wrong, with its place: in the body, or in the address and headers."""

    pointer = serializers.CharField(required=False, help_text="JSON pointer into the body, as a URI fragment.")
    parameter = serializers.CharField(required=False, help_text="Of the address, or a header.")
    detail = serializers.CharField()
    code = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457. Other members carry the facts: who decided what and when, the limit that was passed."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="Stable, for programs.")
    detail = serializers.CharField(help_text="For people.")
    errors = FindingSerializer(many=True, required=False)  # type: ignore[assignment]


class AutoSchema(SpectacularAutoSchema):
    def get_auth(self) -> list[dict[str, Any]]:
        """Only the ways to sign in that the view lets do anything."""
        view: Any = self.view
        people = self.method in view.people
        allowed = {"agentKey": self.method in view.scopes, "personalToken": people and self.method in view.token_scopes}
        return [scheme for scheme in super().get_auth() if allowed.get(next(iter(scheme), ""), people)]

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        responses = super()._get_response_bodies(direction)
        answer: Any = self._get_response_for_code
        for status in ("4XX", "5XX"):
            responses[status] = answer(ProblemSerializer, status, [CONTENT_TYPE])
        return responses


class AgentKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "runs.authentication.AgentKeyAuthentication"
    name = "agentKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "fmt_PREFIX_SECRET"}


class PersonalTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "runs.authentication.PersonalTokenAuthentication"
    name = "personalToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "fmp_PREFIX_SECRET"}


class PersonBasicScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "runs.authentication.PersonBasicAuthentication"
    name = "personBasic"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "basic", "description": "Development instances only."}


class PersonSessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "runs.authentication.PersonSessionAuthentication"
    name = "personSession"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "__Host-sessionid"}
