"""What the outside tells a run: events, and how an agent's own code goes on."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from runs.api.base import RunEndpoint, fresh
from runs.endpoints import read_body
from runs.models import Scope
from runs.paging import InvalidQuery
from runs.serializers import (
    ClaimRun,
    ClaimSerializer,
    FinishRun,
    RunDetailSerializer,
    RunSerializer,
    TellRun,
)
from runs.services.answering import record_event
from runs.services.external import claim_external, finish_external
from runs.strictjson import plain

LONGEST_EVENT_NAME = 120


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
        return Response(RunSerializer(fresh(run_id)).data)


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
        return Response(RunDetailSerializer(fresh(run_id)).data)
