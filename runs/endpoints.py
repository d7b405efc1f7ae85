"""What every view of the API has in common."""

import re
from collections.abc import Callable
from typing import Any, ClassVar, cast

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs.authentication import EITHER
from runs.idempotency import Answer, idempotent, request_hash
from runs.models import TokenScope
from runs.paging import InvalidQuery
from runs.permissions import ByScope
from runs.principals import AgentPrincipal, Principal
from runs.renderers import JSONRenderer

IDEMPOTENCY_KEY = OpenApiParameter(
    name="Idempotency-Key",
    location=OpenApiParameter.HEADER,
    description="Up to 200 visible ASCII characters. The same key with the same request gets the first answer.",
)
_KEY = re.compile(r"[\x21-\x7e]{1,200}")


class Endpoint(APIView):
    """`scopes`: what an agent's key needs, by method. `people`: the methods that people may use;
    `token_scopes`: what a token of theirs needs for it."""

    authentication_classes = EITHER
    permission_classes = (ByScope,)
    scopes: ClassVar[dict[str, str]] = {}
    people: ClassVar[frozenset[str]] = frozenset()
    token_scopes: ClassVar[dict[str, str]] = {"GET": TokenScope.READ}

    def principal(self) -> Principal:
        return self.request.user  # type: ignore[return-value]

    def agent(self) -> AgentPrincipal:
        """The principal of a view that is closed to people."""
        return cast("AgentPrincipal", self.principal())

    def once(self, work: Callable[[], tuple[int, Any]]) -> HttpResponse | Response:
        """Do `work`, which gives a status and a body; with an agent's `Idempotency-Key`, once for that key.

        Raises `IdempotencyConflict`, and `InvalidQuery` for a key that is none.
        """
        principal, key = self.principal(), idempotency_key(self.request)
        if key is None or not isinstance(principal, AgentPrincipal):
            status, body = work()
            return Response(body, status=status)

        def answer() -> Answer:
            status, body = work()
            return Answer(status=status, body=JSONRenderer().render(body).decode())

        asked = request_hash(method=self.request.method or "", path=self.request.path, body=self.request.data)
        kept = idempotent(agent=principal.agent, key=key, request_hash=asked, work=answer)
        response = HttpResponse(kept.body, status=kept.status, content_type="application/json")
        if kept.replayed:
            response["Idempotent-Replayed"] = "true"
        return response


def idempotency_key(request: Request) -> str | None:
    """The header, if there is one. Raises `InvalidQuery`."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidQuery({"Idempotency-Key": ["Must be 1 to 200 visible ASCII characters."]})
    return key


def read_body(kind: type[serializers.Serializer[Any]], request: Request) -> Any:
    """The validated body. Raises `ValidationError`."""
    body = kind(data=request.data)
    body.is_valid(raise_exception=True)
    return body.validated_data
