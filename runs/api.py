"""Runs over HTTP: parse, call one service or query, answer."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoints import codec, store
from checkpoints.models import Checkpoint, Reason
from runs import queries
from runs.endpoints import IDEMPOTENCY_KEY, Endpoint, read_body
from runs.errors import RunNotFound
from runs.fields import Strict
from runs.models import Run, Scope
from runs.paging import InvalidQuery, next_url, page, page_of, read_query
from runs.principals import Person, Principal
from runs.serializers import (
    CancelRun,
    CheckpointQuery,
    CheckpointSerializer,
    ClaimRun,
    ClaimSerializer,
    FinishRun,
    ForkRun,
    RunDetailSerializer,
    RunQuery,
    RunSerializer,
    SnapshotQuery,
    SnapshotSerializer,
    StartRun,
    TellRun,
    TimelineEntrySerializer,
    TimelineQuery,
)
from runs.services.answering import record_event
from runs.services.controlling import cancel_run, fork_run, retry_run
from runs.services.external import claim_external, finish_external
from runs.services.refusals import note_refusal
from runs.services.starting import start_run
from runs.strictjson import plain
from runs.timeline import timeline

LONGEST_EVENT_NAME = 120


Runs = Callable[[Principal], QuerySet[Run]]


class RunEndpoint(Endpoint):
    """A view of one run."""

    def run(self, run_id: UUID, among: Runs = queries.visible_to) -> Run:
        """The run, if it is `among` what the principal may see. Raises RunNotFound, and puts that on record."""
        try:
            return queries.get(among(self.principal()), run_id)
        except RunNotFound as error:
            self.note(run_id, str(error))
            raise

    def note(self, run_id: UUID, reason: str) -> None:
        attempt = f"{self.request.method} {self.request.path.rpartition('/')[2]}"
        note_refusal(run_id=run_id, by=self.principal(), attempt=attempt, reason=reason)


class RunsView(Endpoint):
    """Runs, newest first; and starting a hosted one."""

    scopes = {"GET": Scope.RUNS_READ, "POST": Scope.RUNS_WRITE}
    people = frozenset({"GET"})

    @extend_schema(operation_id="runs_list", parameters=[RunQuery], responses=page_of(RunSerializer))
    def get(self, request: Request) -> Response:
        query = read_query(RunQuery, request)
        rows = queries.visible_to(self.principal()).select_related("head", "agent").filter(**query.filters())
        return Response(page(request, rows, query, lambda run: RunSerializer(run).data))

    @extend_schema(
        operation_id="runs_start", request=StartRun, responses={201: RunSerializer}, parameters=[IDEMPOTENCY_KEY]
    )
    def post(self, request: Request) -> Response | HttpResponse:
        agent = self.agent()
        asked = read_body(StartRun, request)

        def start() -> tuple[int, Any]:
            run = start_run(
                agent=agent.agent,
                key=agent.key,
                workflow=asked["workflow"],
                input=plain(asked["input"], "/input"),
                title=asked["title"],
            )
            return 201, RunSerializer(_fresh(run.pk)).data

        return self.once(start)


class RunView(RunEndpoint):
    """One run: where it stands and, at the end, its result or error."""

    scopes = {"GET": Scope.RUNS_READ}
    people = frozenset({"GET"})

    @extend_schema(operation_id="runs_get", responses=RunDetailSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        run = self.run(run_id)
        readable = queries.readable_by(self.principal()).filter(pk=run.pk).exists()
        return Response((RunDetailSerializer if readable else RunSerializer)(run).data)


class SnapshotView(RunEndpoint):
    """What a checkpoint holds. A value that JSON has no type for is an object whose only keys begin with `py/`."""

    scopes = {"GET": Scope.RUNS_READ}
    people = frozenset({"GET"})

    @extend_schema(operation_id="runs_snapshot", parameters=[SnapshotQuery], responses=SnapshotSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        seq = read_query(SnapshotQuery, request).validated_data.get("seq")
        run = self.run(run_id, among=queries.readable_by)
        with connection.cursor() as cursor:
            snapshot, _ = store.load(cursor, run_id=run.pk, seq=seq)
        # What an agent posted is JSON already: to mark it as Python's would change it.
        show = _as_posted if snapshot.reason == Reason.EXTERNAL else codec.to_jsonable
        return Response(
            {
                "seq": snapshot.seq,
                "workflow": snapshot.workflow,
                "schema": snapshot.schema,
                "phase": snapshot.phase,
                "turn": snapshot.turn,
                "reason": snapshot.reason,
                "at": snapshot.at,
                "digest": snapshot.digest.hex(),
                "state": show(snapshot.state),
                "history": [show(item) for item in snapshot.history or ()],
                "position": show(snapshot.position),
                "pending": show(snapshot.pending),
            }
        )


class CheckpointsView(RunEndpoint):
    """A run's checkpoints, newest first, without their content."""

    scopes = {"GET": Scope.RUNS_READ}
    people = frozenset({"GET"})

    @extend_schema(
        operation_id="runs_checkpoints", parameters=[CheckpointQuery], responses=page_of(CheckpointSerializer)
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        query = read_query(CheckpointQuery, request).validated_data
        run = self.run(run_id, among=queries.readable_by)
        rows = Checkpoint.objects.filter(run_id=run.pk)
        if "before" in query:
            rows = rows.filter(seq__lt=query["before"])
        found = list(rows.order_by("-seq")[: query["limit"] + 1])
        shown = found[: query["limit"]]
        following = next_url(request, before=shown[-1].seq) if len(found) > len(shown) else None
        return Response({"results": CheckpointSerializer(shown, many=True).data, "next": following})


class TimelineView(RunEndpoint):
    """What happened to a run, newest first: checkpoints, steps, gates, events."""

    scopes = {"GET": Scope.RUNS_READ}
    people = frozenset({"GET"})

    @extend_schema(operation_id="runs_timeline", parameters=[TimelineQuery], responses=page_of(TimelineEntrySerializer))
    def get(self, request: Request, run_id: UUID) -> Response:
        query = read_query(TimelineQuery, request).validated_data
        run = self.run(run_id, among=queries.readable_by)
        entries, following = timeline(run, before=query.get("before"), limit=query["limit"])
        return Response(
            {
                "results": TimelineEntrySerializer(entries, many=True).data,
                "next": next_url(request, before=following.isoformat()) if following else None,
            }
        )


class OperatingView(RunEndpoint):
    """What a run's agent and the operators of its team may do to it."""

    scopes = {"POST": Scope.RUNS_WRITE}
    people = frozenset({"POST"})

    def operated(self, run_id: UUID) -> Run:
        run = self.run(run_id)
        if not queries.may_operate(self.principal(), run):
            self.note(run_id, "not an operator")
            raise PermissionDenied("Only operators of the run's team may do this.", code="not_an_operator")
        return run

    def person(self) -> User | None:
        principal = self.principal()
        return principal.user if isinstance(principal, Person) else None


class CancelView(OperatingView):
    """End a run now. Its open approvals are cancelled and its unspent grants void. Again: nothing changes."""

    @extend_schema(operation_id="runs_cancel", request=CancelRun, responses=RunSerializer)
    def post(self, request: Request, run_id: UUID) -> Response:
        asked = read_body(CancelRun, request)
        cancel_run(run_id=self.operated(run_id).pk, actor=self.principal().actor, reason=asked["reason"])
        return Response(RunSerializer(_fresh(run_id)).data)


class RetryView(OperatingView):
    """Queue a failed or blocked run again, from its last checkpoint. What it recorded stays recorded."""

    @extend_schema(operation_id="runs_retry", request=Strict, responses=RunSerializer)
    def post(self, request: Request, run_id: UUID) -> Response:
        read_body(Strict, request)
        retry_run(run_id=self.operated(run_id).pk, actor=self.principal().actor, person=self.person())
        return Response(RunSerializer(_fresh(run_id)).data)


class ForkView(OperatingView):
    """A new run from a checkpoint of this one, with approvals of its own."""

    @extend_schema(
        operation_id="runs_fork", request=ForkRun, responses={201: RunSerializer}, parameters=[IDEMPOTENCY_KEY]
    )
    def post(self, request: Request, run_id: UUID) -> Response | HttpResponse:
        asked = read_body(ForkRun, request)
        parent = self.operated(run_id)

        def fork() -> tuple[int, Any]:
            run = fork_run(
                run_id=parent.pk,
                seq=asked["checkpoint"],
                actor=self.principal().actor,
                acknowledged=asked["acknowledge_effects"],
                person=self.person(),
            )
            return 201, RunSerializer(_fresh(run.pk)).data

        return self.once(fork)


class EventView(RunEndpoint):
    """Tell a run that something happened outside, before or after it waits for it. Once for each name."""

    scopes = {"POST": Scope.RUNS_WRITE}

    @extend_schema(operation_id="runs_tell", request=TellRun, responses=RunSerializer)
    def post(self, request: Request, run_id: UUID, name: str) -> Response:
        if not (len(name) <= LONGEST_EVENT_NAME and name.isprintable()):
            raise InvalidQuery({"name": [f"Must be at most {LONGEST_EVENT_NAME} printable characters."]})
        asked = read_body(TellRun, request)
        run = self.run(run_id)
        record_event(run_id=run.pk, name=name, payload=plain(asked["payload"], "/payload"))
        return Response(RunSerializer(_fresh(run_id)).data)


class ClaimView(RunEndpoint):
    """Take up a decided external run, so that no other process of the agent does; or hold on to it longer."""

    scopes = {"POST": Scope.RUNS_WRITE}

    @extend_schema(operation_id="runs_claim", request=ClaimRun, responses=ClaimSerializer)
    def post(self, request: Request, run_id: UUID) -> Response:
        asked = read_body(ClaimRun, request)
        run = self.run(run_id)
        claim = claim_external(run_id=run.pk, token=asked.get("resume_token"))
        return Response(ClaimSerializer(claim).data)


class FinishView(RunEndpoint):
    """Say how an external run ended. Again: nothing changes."""

    scopes = {"POST": Scope.RUNS_WRITE}

    @extend_schema(operation_id="runs_finish", request=FinishRun, responses=RunDetailSerializer)
    def post(self, request: Request, run_id: UUID) -> Response:
        asked = read_body(FinishRun, request)
        run = self.run(run_id)
        finish_external(
            run_id=run.pk,
            token=asked.get("resume_token"),
            actor=self.principal().actor,
            result=plain(asked.get("result"), "/result"),
            error=asked.get("error"),
        )
        return Response(RunDetailSerializer(_fresh(run_id)).data)


def _fresh(run_id: UUID) -> Run:
    return Run.objects.select_related("head", "agent").get(pk=run_id)


def _as_posted(value: Any) -> Any:
    return value
