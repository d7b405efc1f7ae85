"""Starting runs, and reading them."""

from typing import Any
from uuid import UUID

from django.db import connection
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoints import store
from checkpoints.models import Checkpoint
from runs import queries
from runs.api.base import RunEndpoint, fresh
from runs.endpoints import IDEMPOTENCY_KEY, Endpoint, read_body
from runs.models import Scope
from runs.paging import next_url, page, page_of, read_query
from runs.presentation.snapshots import document
from runs.principals import Person
from runs.serializers import (
    CheckpointQuery,
    CheckpointSerializer,
    RunDetailSerializer,
    RunQuery,
    RunSerializer,
    SnapshotQuery,
    SnapshotSerializer,
    StartRun,
    TimelineEntrySerializer,
    TimelineQuery,
)
from runs.services.starting import start_run
from runs.strictjson import plain
from runs.timeline import timeline


class RunsView(Endpoint):
    """Runs, newest first; and starting a hosted one."""

    scopes = {"GET": Scope.RUNS_READ, "POST": Scope.RUNS_WRITE}
    people = frozenset({"GET"})

    @extend_schema(operation_id="runs_list", parameters=[RunQuery], responses=page_of(RunSerializer))
    def get(self, request: Request) -> Response:
        query = read_query(RunQuery, request)
        parts = [queries.listed(runs).filter(**query.filters()) for runs in queries.listable_by(self.principal())]
        return Response(page(request, parts, query, RunSerializer()))

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
            return 201, RunSerializer(fresh(run.pk)).data

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
    """What a checkpoint holds. A value that JSON has no type for is an object whose only keys begin with `py/`.

    People are given it as the pages show it, with credentials masked; the run's agent as it was saved.
    """

    scopes = {"GET": Scope.RUNS_READ}
    people = frozenset({"GET"})

    @extend_schema(operation_id="runs_snapshot", parameters=[SnapshotQuery], responses=SnapshotSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        seq = read_query(SnapshotQuery, request).validated_data.get("seq")
        run = self.run(run_id, among=queries.readable_by)
        with connection.cursor() as cursor:
            snapshot, _ = store.load(cursor, run_id=run.pk, seq=seq)
        return Response(document(snapshot, mask=isinstance(self.principal(), Person)))


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
        rows = Checkpoint.objects.filter(run_id=run.pk).defer("manifest", "body")
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
