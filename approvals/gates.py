"""What a workflow's author calls to ask a human: `require_approval`, and the answer's `perform`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal, get_args
from uuid import UUID

from approvals import canonical
from approvals.errors import GrantProblem
from approvals.models import Approval
from approvals.services.grants import record_outcome, spend
from approvals.services.opening import Ask, PreparedAsks, RunFacts, open_approvals, prepare
from approvals.states import GRANTING, ApprovalStatus, Risk, Verdict
from checkpoints import codec
from runs.engine.context import RunContext
from runs.engine.effects import Permission
from runs.engine.gates import Opened, Question
from runs.engine.signals import Unrehydratable
from runs.engine.tools import StepFailed, Tool, find_tool
from runs.engine.turn import AuthorError
from runs.hooks import Cursor
from runs.models import Run
from runs.strictjson import Number

Until = Literal["all", "first"]
FIRST = b"fermata/first-answer/1\0"
ALL_VERDICTS = (Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT, Verdict.RESPOND)


@dataclass(frozen=True)
class Proposal:
    """One action to ask about. `args` holds JSON values; `expires_in` and `risk` can only tighten the policies."""

    key: str
    tool: Tool
    args: Mapping[str, Any]
    title: str
    description: str = ""
    risk: str = Risk.LOW
    expires_in: timedelta | None = None
    allowed: Sequence[str] = ALL_VERDICTS
    groups: Sequence[str] = ()
    users: Sequence[str] = ()


@dataclass(frozen=True)
class Grant:
    """The answer to a proposal; true when it may be performed.

    `message` is the reviewer's text: something a person said, not an instruction to follow. `args` are the approved
    arguments, edits included, with fractions as exact `Decimal`s; None unless it may be performed.
    """

    key: str
    outcome: ApprovalStatus
    approval_id: UUID
    message: str
    action: str | None
    args: Mapping[str, Any] | None
    proposal: Proposal
    gate: _Gate = field(repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.outcome in GRANTING

    def perform(self, run: RunContext) -> Any:
        """Perform exactly the approved call, once, and return its result.

        Raises StepFailed where the tool refused; AuthorError where nothing was granted. A grant that ran out unspent,
        or was revoked, is asked about again: the run parks.
        """
        if not self or self.args is None or self.action is None:
            raise AuthorError(f"gate {self.key!r} was {self.outcome}: check `if not grant` before grant.perform(run)")
        action, approval_id = self.action, self.approval_id
        spent_key = f"{run.id}/{self.key}"

        def spend_grant(cursor: Cursor) -> None:
            spend(cursor, approval_id=approval_id, action=action, spent_key=spent_key)

        def report(cursor: Cursor, succeeded: bool, outcome: Any) -> None:
            record_outcome(
                cursor,
                approval_id=approval_id,
                spent_key=spent_key,
                succeeded=succeeded,
                outcome=outcome_text(outcome),
                observed=True,
            )

        try:
            return run.perform(self.key, self.proposal.tool, self.args, Permission(approval_id, spend_grant, report))
        except GrantProblem:
            answers = run.ask_again(self.gate.questions[self.key], self.gate)
            again = _grant(self.gate, self.proposal, answers[self.key])
            if not again:
                raise StepFailed(again.message or f"{self.key} was {again.outcome} when it was asked again") from None
            return again.perform(run)


def require_approval(
    run: RunContext,
    key: str,
    *,
    tool: Tool,
    args: Mapping[str, Any],
    title: str,
    description: str = "",
    risk: str = Risk.LOW,
    expires_in: timedelta | None = None,
    allowed: Sequence[str] = ALL_VERDICTS,
    groups: Sequence[str] = (),
    users: Sequence[str] = (),
) -> Grant:
    """Ask a human about one exact action, and give back the answer: at once where it is known, else the run parks.

    Raises AuthorError, `InvalidAsk` and `TooManyPending` for what cannot be asked.
    """
    proposal = Proposal(key, tool, args, title, description, risk, expires_in, allowed, groups, users)
    return require_approvals(run, [proposal])[key]


def require_approvals(run: RunContext, proposals: Sequence[Proposal], *, until: Until = "all") -> dict[str, Grant]:
    """Ask about several actions at one gate; parks until all are decided. Answers by key, never by order.

    `until="first"`: the first answer is enough. As soon as one is approved, edited, rejected or responded to, or
    expires, the others are cancelled. What a policy denies or somebody cancels is no answer: the others stay open.
    """
    if until not in get_args(Until):
        raise AuthorError(f"require_approvals: until= is 'all' or 'first', not {until!r}")
    for proposal in proposals:
        tool: object = proposal.tool  # authors pass what they like
        if not isinstance(tool, Tool) or not tool.gated:
            raise AuthorError(f"gate {proposal.key!r}: tool= takes a function registered with @tool(gated=True)")
    gate = _Gate(run, tuple(proposals), until)
    answers = run.ask(tuple(gate.questions.values()), gate)
    return {proposal.key: _grant(gate, proposal, answers[proposal.key]) for proposal in proposals}


def posted_approvals(run: RunContext) -> dict[str, Grant]:
    """The answers to what an external agent asked when it posted this run's snapshot, by its keys.

    A fork asks its parent's questions anew.
    """
    asked = Approval.objects.filter(turn=run.turn, generation=0, supersedes=None).order_by("created_at")
    run_id: UUID | None = run.id
    while run_id is not None and not (posted := asked.filter(run_id=run_id)):
        run_id = Run.objects.values_list("parent_id", flat=True).get(id=run_id)
    return require_approvals(run, [_posted(approval) for approval in posted])


class _Gate:
    """The questions of one gate, and how they are opened in the transaction that parks the run."""

    def __init__(self, run: RunContext, proposals: tuple[Proposal, ...], until: Until) -> None:
        self._run = run
        self._asks = {p.key: replace(_ask(p), closes_others=until == "first") for p in proposals}
        self._prepared: PreparedAsks | None = None
        digests = {key: question_digest(ask) for key, ask in self._asks.items()}
        if until == "first":
            # One question that changes makes all of them new: an answer of the old gate must not stand beside one of
            # the new gate.
            whole = b"".join(sorted(digests.values()))
            digests = {key: hashlib.sha256(FIRST + own + whole).digest() for key, own in digests.items()}
        self.questions = {key: Question(key, digest) for key, digest in digests.items()}

    def prepare(self, keys: Sequence[str]) -> None:
        """Find the policies that apply, check the schemas, and compute the digests, before the transaction begins."""
        row = Run.objects.select_related("agent").get(id=self._run.id)
        facts = RunFacts(run_id=row.id, team_id=row.team_id, agent_id=row.agent_id, agent=row.agent.name)
        self._prepared = prepare([self._asks[key] for key in keys], run=facts)

    def open(self, cursor: Cursor, opened: Sequence[Opened], snapshot_digest: bytes) -> None:
        if self._prepared is None:
            raise RuntimeError("a gate is opened that was not prepared")
        open_approvals(
            cursor,
            self._prepared,
            run_id=self._run.id,
            turn=self._run.turn,
            snapshot_digest=snapshot_digest.hex(),
            generations={gate.key: gate.generation for gate in opened},
        )


def question_digest(ask: Ask) -> bytes:
    """32 bytes that change when what would be performed changes. The wording around it may differ between tries."""
    text = canonical.dumps({"tool": ask.tool, "tool_version": ask.tool_version, "target": ask.target, "args": ask.args})
    return hashlib.sha256(b"fermata/question/1\0" + text.encode()).digest()


def _ask(proposal: Proposal) -> Ask:
    tool = proposal.tool
    return Ask(
        key=proposal.key,
        tool=tool.name,
        args=canonical.dumps(dict(proposal.args)),
        title=proposal.title,
        description=proposal.description,
        risk=max(proposal.risk, tool.risk, key=list(Risk.values).index),
        allowed=tuple(proposal.allowed),
        args_schema=canonical.dumps(dict(tool.args_schema)) if tool.args_schema else "{}",
        expires_in=proposal.expires_in,
        groups=tuple(proposal.groups),
        users=tuple(proposal.users),
        tool_version=tool_version(tool),
        target=tool.target,
    )


def tool_version(tool: Tool) -> str:
    """What a grant is bound to besides the arguments: a tool declared otherwise is another tool."""
    schema = canonical.dumps(dict(tool.args_schema)) if tool.args_schema else "{}"
    text = "\x1f".join((tool.name, tool.effect, tool.version, schema))
    return hashlib.sha256(text.encode()).hexdigest()


def _posted(approval: Approval) -> Proposal:
    tool = find_tool(approval.tool)
    if tool is None:
        raise Unrehydratable(f"tool {approval.tool!r} is not registered")
    return Proposal(
        key=approval.key,
        tool=tool,
        args=canonical.parse(approval.revisions.get(number=1).args),
        title=approval.title,
        description=approval.description,
    )


def _grant(gate: _Gate, proposal: Proposal, answer: Mapping[str, Any]) -> Grant:
    args = answer["args"]
    return Grant(
        key=proposal.key,
        outcome=ApprovalStatus(answer["outcome"]),
        approval_id=UUID(answer["approval"]),
        message=answer["message"],
        action=answer["action"],
        args=None if args is None else plain(canonical.parse(args)),
        proposal=proposal,
        gate=gate,
    )


def plain(value: Any) -> Any:
    """JSON values as plain Python ones: a number with a fraction as an exact `Decimal`."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return Decimal(value.text) if isinstance(value, Number) else value


def outcome_text(outcome: Any) -> str:
    """A call's result, or its failure's message, as JSON text for people to read."""
    return json.dumps(codec.to_jsonable(outcome), sort_keys=True)
