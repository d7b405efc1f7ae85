"""Errors as RFC 9457 problems: the only place that says which exception is which HTTP status."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import JsonResponse
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.response import Response
from rest_framework.settings import api_settings

from approvals import errors as approvals
from checkpoints import errors as checkpoints
from runs import errors as runs
from runs.idempotency import IdempotencyConflict
from runs.paging import InvalidQuery
from runs.parsers import BodyTooLarge
from runs.services.external import ClaimedElsewhere
from runs.strictjson import NotStrictJSON, escape, pointer

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER = 2

# The first class that matches counts, so a subclass stands before its base.
DOMAIN: tuple[tuple[type[Exception], int, str], ...] = (
    (NotStrictJSON, 400, "not_strict_json"),
    (RequestDataTooBig, 413, "request_too_large"),
    (BodyTooLarge, 413, "request_too_large"),
    (checkpoints.SnapshotTooLarge, 413, "snapshot_too_large"),
    (checkpoints.HoldsCredential, 400, "holds_credential"),
    (checkpoints.Unencodable, 400, "unencodable"),
    (checkpoints.NotFound, 404, "not_found"),
    (checkpoints.Unreadable, 409, "unreadable"),
    (IdempotencyConflict, 409, "idempotency_conflict"),
    (runs.RunNotFound, 404, "not_found"),
    (runs.WrongState, 409, "wrong_state"),
    (runs.StaleCheckpoint, 409, "stale_checkpoint"),
    (runs.NotAcknowledged, 409, "not_acknowledged"),
    (runs.NothingToContinue, 404, "nothing_to_continue"),
    (runs.EventConflict, 409, "event_conflict"),
    (ClaimedElsewhere, 409, "claimed_elsewhere"),
    (runs.UnknownWorkflow, 400, "unknown_workflow"),
    (runs.UnknownPhase, 400, "unknown_phase"),
    (runs.CredentialPosted, 400, "holds_credential"),
    (runs.InvalidInput, 400, "invalid_input"),
    (approvals.NotVisible, 404, "not_found"),
    (approvals.NotEligible, 403, "not_eligible"),
    (approvals.AlreadyDecided, 409, "already_decided"),
    (approvals.AlreadyVoted, 409, "already_voted"),
    (approvals.StaleReview, 409, "stale_review"),
    (approvals.NotAllowed, 403, "not_allowed"),
    (approvals.EditInvalid, 400, "edit_invalid"),
    (approvals.VoteInvalid, 400, "vote_invalid"),
    (approvals.TokenNotEnough, 403, "token_not_enough"),
    (approvals.StepUpNeeded, 403, "step_up_needed"),
    (approvals.ClaimedByOther, 409, "claimed"),
    (approvals.NothingToUndo, 409, "nothing_to_undo"),
    (approvals.InvalidAsk, 400, "invalid_ask"),
    (approvals.DelegationRefused, 403, "delegation_refused"),
    (approvals.PolicyInvalid, 400, "policy_invalid"),
    (approvals.ChangeDecided, 409, "change_decided"),
    (approvals.ChangeStale, 409, "change_stale"),
    (approvals.ChangeRefused, 403, "change_refused"),
    (approvals.TooManyPending, 429, "too_many_pending"),
    (OperationalError, 503, "unavailable"),
    (InterfaceError, 503, "unavailable"),
)
_NO_FACTS = frozenset({"errors", "findings", "path", "reason"})
# It may have gone away after the commit and before its answer, so nobody knows whether it was done.
UNAVAILABLE = "The database cannot be reached. What was asked may or may not have been done: try again in a moment."
TITLES = {
    400: "The request is not valid",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    429: "Too many",
    500: "Internal error",
    503: "Unavailable",
}


class DomainProblem(APIException):
    """An exception of a service, on its way out. `facts` become members of the problem."""

    def __init__(self, error: Exception, status: int, code: str) -> None:
        super().__init__(UNAVAILABLE if status == 503 else _sentence(str(error)), code)
        self.status_code = status
        self.facts = {} if status == 503 else _facts(error)
        self.findings = tuple(_findings(error))
        if status == 503:
            self.wait = RETRY_AFTER


class ProblemHandler(ExceptionHandler):
    def convert_known_exceptions(self, exc: Exception) -> Exception:
        if isinstance(exc, approvals.GrantProblem):
            return DomainProblem(exc, 409, exc.kind)
        for kind, status, code in DOMAIN:
            if isinstance(exc, kind):
                return DomainProblem(exc, status, code)
        return super().convert_known_exceptions(exc)

    def get_response(self, exc: APIException, data: dict[str, Any]) -> Response:
        response = super().get_response(exc, data)
        response.content_type = CONTENT_TYPE
        return response


class ProblemFormatter(ExceptionFormatter):
    def run(self) -> dict[str, Any]:
        exc = self.exc
        if isinstance(exc, ValidationError):
            findings = list(_flat(exc.detail, "#", "parameter" if isinstance(exc, InvalidQuery) else "pointer"))
            return problem(400, code="invalid", detail=_summary(findings), errors=findings)
        detail = exc.detail if isinstance(exc.detail, ErrorDetail) else ErrorDetail(str(exc.detail))
        if isinstance(exc, DomainProblem):
            errors = {"errors": list(exc.findings)} if exc.findings else {}
            return problem(exc.status_code, code=str(detail.code), detail=str(detail), **exc.facts, **errors)
        code = "internal_error" if exc.status_code == 500 else str(detail.code or exc.default_code)
        return problem(exc.status_code, code=code, detail=str(detail))


def problem(status: int, *, code: str, detail: str, **members: Any) -> dict[str, Any]:
    """The body of a problem. `code` is stable, for programs; `detail` is a sentence, for people."""
    body = {"type": f"urn:fermata:problem:{code}", "title": TITLES.get(status, "Error"), "status": status}
    return {**members, **body, "code": code, "detail": detail}


def problem_response(status: int, *, code: str, detail: str) -> JsonResponse:
    """A problem outside of the API's views."""
    response = JsonResponse(problem(status, code=code, detail=detail), status=status, content_type=CONTENT_TYPE)
    if status == 503:
        response["Retry-After"] = str(RETRY_AFTER)
    return response


def _facts(error: Exception) -> dict[str, Any]:
    """The exception's own data. What is wrong with which field goes elsewhere, as `errors`."""
    facts = {name: fact for name, fact in vars(error).items() if name not in _NO_FACTS}
    facts |= facts.pop("facts", {})
    if "status" in facts:  # of the run or grant; a problem's own `status` is that of HTTP
        facts["current_status"] = facts.pop("status")
    return facts


def _findings(error: Exception) -> Iterator[dict[str, str]]:
    if isinstance(error, NotStrictJSON):
        for finding in error.findings:
            yield {"pointer": f"#{finding.pointer}", "detail": _sentence(finding.detail), "code": finding.code}
    elif isinstance(error, approvals.InvalidAsk | approvals.EditInvalid):
        root = "/args" if isinstance(error, approvals.EditInvalid) else ""
        for place, message in error.errors:
            yield {"pointer": f"#{root}{place}", "detail": _sentence(message), "code": "invalid"}
    elif isinstance(error, approvals.VoteInvalid | approvals.PolicyInvalid):
        for field, message in error.errors:
            yield {"pointer": f"#/{field}", "detail": _sentence(message), "code": "invalid"}
    elif isinstance(error, checkpoints.SnapshotTooLarge):
        yield {"pointer": f"#{pointer(error.path)}", "detail": _sentence(str(error)), "code": "too_large"}
    elif isinstance(error, runs.InvalidInput | checkpoints.Unencodable):
        yield {"pointer": f"#{pointer(error.path)}", "detail": _sentence(error.reason), "code": "invalid"}


def _flat(detail: Any, place: str, name: str) -> Iterator[dict[str, str]]:
    """DRF's nested errors as a flat list; `name` says whether places are pointers or parameters."""
    if isinstance(detail, dict):
        for key, inner in detail.items():
            if key == api_settings.NON_FIELD_ERRORS_KEY:
                yield from _flat(inner, place, name)
            else:
                yield from _flat(inner, str(key) if name == "parameter" else f"{place}/{escape(str(key))}", name)
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            here = place if isinstance(inner, ErrorDetail) else f"{place}/{index}"
            yield from _flat(inner, here, name)
    else:
        yield {name: place, "detail": str(detail), "code": str(detail.code or "invalid")}


def _summary(findings: list[dict[str, str]]) -> str:
    first = findings[0]
    more = f" ({len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{first.get('pointer', first.get('parameter'))}: {first['detail']}{more}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
