"""What a run's agent and the operators of its team do to it."""

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from runs import queries
from runs.api.base import RunEndpoint, fresh
from runs.endpoints import IDEMPOTENCY_KEY, read_body
from runs.fields import Strict
from runs.models import Run, Scope
from runs.principals import Person
from runs.serializers import (
    CancelRun,
    ForkRun,
    RunSerializer,
)
from runs.services.controlling import cancel_run, fork_run, retry_run


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
        return Response(RunSerializer(fresh(run_id)).data)


class RetryView(OperatingView):
    """Queue a failed or blocked run again, from its last checkpoint. What it recorded stays recorded."""

    @extend_schema(operation_id="runs_retry", request=Strict, responses=RunSerializer)
    def post(self, request: Request, run_id: UUID) -> Response:
        read_body(Strict, request)
        retry_run(run_id=self.operated(run_id).pk, actor=self.principal().actor, person=self.person())
        return Response(RunSerializer(fresh(run_id)).data)


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
            return 201, RunSerializer(fresh(run.pk)).data

        return self.once(fork)
