"""Suspending an external agent's run: its snapshot, its gate and its approvals commit together, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from approvals import canonical
from approvals.errors import InvalidAsk
from approvals.gates import question_digest, tool_version
from approvals.models import Approval
from approvals.secrecy import credentials_in
from approvals.services.asking import MAX_TITLE, Ask, PreparedAsks, RunFacts, prepare
from approvals.services.opening import open_approvals
from approvals.states import Risk
from runs.engine.gates import Opened, PrepareAgain, Question
from runs.engine.tools import Tool, find_tool
from runs.errors import NothingToContinue
from runs.hooks import Cursor
from runs.models import Run
from runs.principals import AgentPrincipal
from runs.services.locking import lock_run
from runs.services.posted import cleaner
from runs.services.starting import PostedSnapshot, Resume, park_external
from runs.states import ResumeMode


@dataclass(frozen=True)
class Suspension:
    """A parked run and what it waits for, in the order asked."""

    run: Run
    approvals: tuple[Approval, ...]


def suspend(
    *,
    by: AgentPrincipal,
    external_id: str,
    title: str,
    snapshot: PostedSnapshot,
    resume: Resume,
    asks: Sequence[Ask],
    continues: UUID | None = None,
    if_match: int | None = None,
) -> Suspension:
    """Store the snapshot and park the run at one gate of all `asks`. Works inside the caller's transaction, if any.

    With `if_match` a run is continued, whose newest checkpoint that must be: `continues`, or the agent's newest run
    called `external_id`. Raises `InvalidAsk`, `TooManyPending`, `NothingToContinue`, and what `park_external` raises.
    """
    asks = _without_credentials(asks, by)
    if resume.mode == ResumeMode.WORKFLOW:
        asks = [_of_tool(ask, index) for index, ask in enumerate(asks)]
    else:
        asks = [replace(ask, target=by.agent.target) for ask in asks]
    run_id = uuid4() if if_match is None else continues or _newest_called(by, external_id)
    facts = RunFacts(run_id=run_id, team_id=by.agent.team_id, agent_id=by.agent.pk, agent=by.agent.name)
    while True:
        prepared = prepare(asks, run=facts)
        opener = _Opener(prepared, run_id)
        try:
            run = park_external(
                agent=by.agent,
                key=by.key,
                external_id=external_id,
                title=title,
                snapshot=snapshot,
                resume=resume,
                questions=[Question(item.ask.key, question_digest(item.ask)) for item in prepared.asks],
                opener=opener,
                run_id=run_id,
                if_match=if_match,
            )
        except PrepareAgain:
            continue
        break
    approvals = {approval.pk: approval for approval in Approval.objects.filter(pk__in=opener.opened)}
    return Suspension(run=run, approvals=tuple(approvals[opened] for opened in opener.opened))


class _Opener:
    """Opens the approvals of the gate in the transaction that parks the run, and remembers which."""

    def __init__(self, prepared: PreparedAsks, run_id: UUID) -> None:
        self._prepared = prepared
        self._run_id = run_id
        self.opened: list[UUID] = []

    def prepare(self, keys: Sequence[str]) -> None:
        pass

    def open(self, cursor: Cursor, opened: Sequence[Opened], snapshot_digest: bytes) -> None:
        self.opened = [
            approval.id
            for approval in open_approvals(
                cursor,
                self._prepared,
                run_id=self._run_id,
                turn=lock_run(cursor, self._run_id).turn,
                snapshot_digest=snapshot_digest.hex(),
            )
        ]


def _without_credentials(asks: Sequence[Ask], by: AgentPrincipal) -> list[Ask]:
    """The asks with their words as they may be kept: redacted, if the agent is set up so. What has to stay what it is
    is never redacted. Raises `InvalidAsk`; arguments are looked at by `prepare`, whoever asks."""
    clean = cleaner(by.agent)
    worded = [replace(ask, title=clean(ask.title)[:MAX_TITLE], description=clean(ask.description)) for ask in asks]
    errors = [
        (f"/{index}/{field}{place}", wrong)
        for index, ask in enumerate(worded)
        for field in ("key", "tool", "title", "description")
        for place, wrong in credentials_in(getattr(ask, field))
    ]
    errors += [
        (f"/{index}/args_schema{place}", wrong)
        for index, ask in enumerate(worded)
        for place, wrong in credentials_in(canonical.parse(ask.args_schema))
    ]
    if errors:
        raise InvalidAsk(errors)
    return worded


def _of_tool(ask: Ask, index: int) -> Ask:
    """The ask as the deployed tool has it, which a workflow will meet when it performs it."""
    tool = find_tool(ask.tool)
    if tool is None or not tool.gated:
        raise InvalidAsk([(f"/{index}/tool", "is not a gated tool of this deployment")])
    return replace(
        ask,
        risk=max(ask.risk, tool.risk, key=list(Risk.values).index),
        tool_version=tool_version(tool),
        target=tool.target,
        args_schema=_both(tool, ask, index),
    )


def _both(tool: Tool, ask: Ask, index: int) -> str:
    """The tool's schema, which describes the fields, and the agent's on top of it: arguments have to satisfy both."""
    if not tool.args_schema:
        return ask.args_schema
    schema = dict(tool.args_schema)
    if ask.args_schema != "{}":
        if '"$ref"' in ask.args_schema:
            raise InvalidAsk([(f"/{index}/args_schema", "cannot use $ref beside the schema of the workflow's tool")])
        schema["allOf"] = [*schema.get("allOf", []), canonical.parse(ask.args_schema)]
    return canonical.dumps(schema)


def _newest_called(by: AgentPrincipal, external_id: str) -> UUID:
    runs = Run.objects.filter(agent=by.agent, external_id=external_id).exclude(external_id="")
    found = runs.order_by("-created_at", "-pk").values_list("pk", flat=True).first()
    if found is None:
        raise NothingToContinue(external_id)
    return found
