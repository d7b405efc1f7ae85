"""The examples' payment provider, and a stub of it that stores every call, duplicates included."""

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from examples.models import Refund
from runs.authoring import NotPerformed, StepFailed

TIMEOUT_SECONDS = 30


def post_refund(*, order_id: str, amount: str, idempotency_key: str) -> dict[str, Any]:
    """`POST {PAYMENTS_URL}/refunds`. Raises NotPerformed or StepFailed for what is known not to have happened.

    Anything else, a 503 too, leaves open whether it happened: the call is made again with the same key.
    """
    request = Request(  # noqa: S310 - the operator's own URL
        f"{settings.PAYMENTS_URL}/refunds",
        data=json.dumps({"order_id": order_id, "amount": amount}).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": idempotency_key},
        method="POST",
    )
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
            receipt: dict[str, Any] = json.load(response)
            return receipt
    except HTTPError as error:
        error.close()  # it holds the connection
        if 400 <= error.code < 500:
            raise StepFailed(f"the payment provider refused: {error.code} {error.reason}") from error
        raise
    except URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            raise NotPerformed("the payment provider cannot be reached") from error
        raise


@csrf_exempt
@require_http_methods(["POST", "GET"])
def refunds(request: HttpRequest) -> JsonResponse:
    """The stub: a POST pays once per `Idempotency-Key`; a GET lists every call."""
    if request.method == "GET":
        calls = Refund.objects.order_by("id").values("idempotency_key", "order_id", "amount", "first")
        return JsonResponse({"results": list(calls)})
    key = request.headers.get("Idempotency-Key", "")
    try:
        body = json.loads(request.body)
        order_id, amount = str(body["order_id"]), str(body["amount"])
    except (ValueError, KeyError, TypeError):
        return JsonResponse({"error": "order_id and amount are needed"}, status=400)
    if not key:
        return JsonResponse({"error": "Idempotency-Key is needed"}, status=400)
    try:
        with transaction.atomic():
            Refund.objects.create(idempotency_key=key, order_id=order_id, amount=amount, first=True)
    except IntegrityError:
        Refund.objects.create(idempotency_key=key, order_id=order_id, amount=amount, first=False)
    paid = Refund.objects.get(idempotency_key=key, first=True)
    return JsonResponse({"refund": f"rf-{paid.pk}", "order_id": paid.order_id, "amount": paid.amount})
