"""Approvals over HTTP: parse, call one service or query, answer."""

from typing import Any, NoReturn, cast
from uuid import UUID, uuid4

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from approvals import canonical, queries
from approvals.audit.views_log import record_view
from approvals.errors import InvalidAsk, NotVisible
from approvals.models import Approval
from approvals.serializers import (
    ApprovalQuery,
    ApprovalSerializer,
    CancelShape,
    ConsumedSerializer,
    ConsumeShape,
    OutcomeShape,
    SuspensionSerializer,
    SuspensionShape,
    VoteShape,
    WaitQuery,
    to_ask,
)
from approvals.services.cancelling import cancel
from approvals.services.consuming import consume, report_outcome
from approvals.services.refusing import refuse
from approvals.services.suspending import suspend
from approvals.services.voting import vote
from runs.clock import database_now
from runs.endpoints import IDEMPOTENCY_KEY, Endpoint, idempotency_key, read_body
from runs.models import Scope, TokenScope
from runs.paging import InvalidQuery, page, page_of, read_query
from runs.permissions import PEOPLE_ONLY
from runs.principals import AgentPrincipal, Person, Principal
from runs.serializers import run_url
from runs.services.starting import PostedSnapshot, Resume
from runs.states import ResumeMode
from runs.strictjson import plain

IF_MATCH = OpenApiParameter(
    name="If-Match",
    location=OpenApiParameter.HEADER,
    description="To continue a run, by its id or external_id: the number of its newest checkpoint.",
)


class SuspensionsView(Endpoint):
    """Store a snapshot, open its approvals and park the run: all of it, or nothing."""

    scopes = {"POST": Scope.APPROVALS_WRITE}

    @extend_schema(
        operation_id="suspensions_create",
        request=SuspensionShape,
        responses={201: SuspensionSerializer},
        parameters=[IDEMPOTENCY_KEY, IF_MATCH],
    )
    def post(self, request: Request) -> Response | HttpResponse:
        agent = self.agent()
        asked = read_body(SuspensionShape, request)
        require_scopes(agent, asked["resume"])
        if_match = _if_match(request)
        if if_match is None and "id" in asked["run"]:
            raise InvalidQuery({"If-Match": ["Is needed to continue a run."]})

        def park() -> tuple[int, Any]:
            return 201, _suspended(agent, asked, if_match)

        return self.once(park)


class ApprovalsView(Endpoint):
    """Approvals, newest first."""

    scopes = {"GET": Scope.APPROVALS_READ}
    people = frozenset({"GET"})

    @extend_schema(operation_id="approvals_list", parameters=[ApprovalQuery], responses=page_of(ApprovalSerializer))
    def get(self, request: Request) -> Response:
        query = read_query(ApprovalQuery, request)
        parts = [_whole(part).filter(**query.filters()) for part in queries.listable_by(self.principal())]
        return Response(page(request, parts, query, ApprovalSerializer()))


class ApprovalView(Endpoint):
    """One approval. With `wait`, the answer comes as soon as it is decided (`fermata.live` does the waiting)."""

    scopes = {"GET": Scope.APPROVALS_READ}
    people = frozenset({"GET"})

    @extend_schema(operation_id="approvals_get", parameters=[WaitQuery], responses=ApprovalSerializer)
    def get(self, request: Request, approval_id: UUID) -> Response:
        read_query(WaitQuery, request)
        return Response(_shown(self.principal(), approval_id))


class VotesView(Endpoint):
    """A person's verdict. It counts at once: there is no time to take it back, as there is in the inbox."""

    people = frozenset({"POST"})
    token_scopes = {"POST": TokenScope.VOTE}

    @extend_schema(operation_id="approvals_vote", request=VoteShape, responses={201: ApprovalSerializer})
    def post(self, request: Request, approval_id: UUID) -> Response:
        person = cast("Person", self.principal())
        verdict = read_body(VoteShape, request)
        vote(
            approval_id=approval_id,
            voter=person.user,
            verdict=verdict["type"],
            review=verdict["review"],
            args=canonical.dumps(verdict["args"]) if "args" in verdict else None,
            message=verdict["message"],
            by_token=person.token is not None,
        )
        return Response(_shown(person, approval_id), status=201)

    def permission_denied(self, request: Request, message: str | None = None, code: str | None = None) -> NoReturn:
        principal = self.principal()
        if isinstance(principal, AgentPrincipal):
            refuse(approval_id=self.kwargs["approval_id"], by=principal, attempt="vote", why=PEOPLE_ONLY)
        if isinstance(principal, Person) and principal.token is not None:
            refuse(approval_id=self.kwargs["approval_id"], by=principal, attempt="vote", why=message or "")
        super().permission_denied(request, message, code)


class CancelView(Endpoint):
    """Take an open approval back: its agent, or an operator of its team. Again: nothing changes."""

    scopes = {"POST": Scope.APPROVALS_WRITE}
    people = frozenset({"POST"})

    @extend_schema(operation_id="approvals_cancel", request=CancelShape, responses=ApprovalSerializer)
    def post(self, request: Request, approval_id: UUID) -> Response:
        asked = read_body(CancelShape, request)
        cancel(approval_id=approval_id, by=self.principal(), reason=asked["reason"])
        return Response(_shown(self.principal(), approval_id))


class ConsumeView(Endpoint):
    """Spend a grant, before the call that it permits. With the same `Idempotency-Key` again the answer says
    `replayed`, and nothing may be performed; without one every request is a consumer of its own, and the first wins."""

    scopes = {"POST": Scope.APPROVALS_WRITE}

    @extend_schema(
        operation_id="approvals_consume",
        request=ConsumeShape,
        responses=ConsumedSerializer,
        parameters=[IDEMPOTENCY_KEY],
    )
    def post(self, request: Request, approval_id: UUID) -> Response:
        asked = read_body(ConsumeShape, request)
        spent = consume(
            approval_id=approval_id,
            by=self.agent(),
            spent_key=idempotency_key(request) or str(uuid4()),
            action=asked.get("action"),
            token=asked.get("resume_token"),
        )
        return Response(ConsumedSerializer(spent).data)


class OutcomeView(Endpoint):
    """Say what came of the call. Again: nothing changes."""

    scopes = {"POST": Scope.APPROVALS_WRITE}

    @extend_schema(operation_id="approvals_outcome", request=OutcomeShape, responses=ApprovalSerializer)
    def post(self, request: Request, approval_id: UUID) -> Response:
        asked = read_body(OutcomeShape, request)
        report_outcome(
            approval_id=approval_id,
            by=self.agent(),
            succeeded=asked["status"] == "succeeded",
            outcome=canonical.dumps({name: asked[name] for name in ("result", "note") if asked.get(name)}),
            token=asked.get("resume_token"),
        )
        return Response(_shown(self.principal(), approval_id))


def require_scopes(agent: AgentPrincipal, resume: dict[str, str]) -> None:
    """Entering a workflow needs a scope of its own. Raises `PermissionDenied`."""
    scope = f"workflow:{resume.get('workflow')}"
    if resume["mode"] == ResumeMode.WORKFLOW and not agent.may(scope):
        raise PermissionDenied(f"The key lacks the scope {scope}.", code="scope_missing")


def _suspended(agent: AgentPrincipal, asked: dict[str, Any], if_match: int | None) -> dict[str, Any]:
    now = database_now()
    asks = [to_ask(ask, now=now) for ask in asked["approvals"]]
    schema_name, _, schema = asked["snapshot"]["schema"].rpartition("/")
    try:
        suspension = suspend(
            by=agent,
            external_id=asked["run"]["external_id"],
            title=asked["run"].get("title", asks[0].title),
            snapshot=PostedSnapshot(
                schema_name=schema_name,
                schema=int(schema),
                **{
                    name: plain(asked["snapshot"][name], f"/snapshot/{name}")
                    for name in ("state", "history", "position", "pending")
                },
            ),
            resume=Resume(**asked["resume"]),
            asks=asks,
            continues=asked["run"].get("id"),
            if_match=if_match,
        )
    except InvalidAsk as error:
        raise InvalidAsk([(f"/approvals{place}", message) for place, message in error.errors]) from error
    run = suspension.run
    run.head.refresh_from_db()
    return SuspensionSerializer(
        {
            "run": {"id": run.pk, "status": run.head.status, "checkpoint": run.head.head_seq, "url": run_url(run)},
            "approvals": suspension.approvals,
        }
    ).data


def _if_match(request: Request) -> int | None:
    text = request.headers.get("If-Match")
    if text is None:
        return None
    seq = text.strip().strip('"')
    if not (seq.isascii() and seq.isdigit() and len(seq) < 10):
        raise InvalidQuery({"If-Match": ["Must be the number of a checkpoint."]})
    return int(seq)


def _shown(principal: Principal, approval_id: UUID) -> dict[str, Any]:
    approval = _whole(queries.visible_to(principal)).filter(pk=approval_id).first()
    if approval is None:
        refuse(approval_id=approval_id, by=principal, attempt="read", why="It has just come into sight: ask again.")
        raise NotVisible(approval_id)
    if isinstance(principal, Person):
        record_view(approval=approval, viewer=principal.user)
    return ApprovalSerializer(approval).data


def _whole(approvals: QuerySet[Approval]) -> QuerySet[Approval]:
    return approvals.select_related("decision__decided_by", "grant")
