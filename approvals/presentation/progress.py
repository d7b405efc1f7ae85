"""What became of a decision: held, decided, queued, resumed, the tool's result."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.safestring import SafeString

from approvals import canonical
from approvals.models import Approval, Decision, Grant, Vote
from approvals.presentation.chips import settled_chip
from approvals.presentation.policy import DID, name_of
from approvals.states import CLOSED, GRANTING, ApprovalKind, ApprovalStatus, GrantStatus, Verdict
from runs.models import Gate, WebhookPost
from runs.presentation.status import status_line
from runs.presentation.values import pretty
from runs.states import FINISHED, OUTSIDE, PostState, RunStatus

REACHED, NOW, WRONG = "reached", "now", "wrong"
GRANTS = {
    GrantStatus.READY: ("Result", "", "not called yet"),
    GrantStatus.SPENT: ("Result", NOW, "the call is under way"),
    GrantStatus.SUCCEEDED: ("Done", REACHED, ""),
    GrantStatus.FAILED: ("The call failed", WRONG, ""),
    GrantStatus.IN_DOUBT: ("In doubt", WRONG, "nobody knows yet whether the call happened"),
    GrantStatus.REVOKED: ("Revoked", WRONG, "the approval was taken back before it was used"),
    GrantStatus.VOID: ("Void", WRONG, "the run ended or asked again before it was used"),
    GrantStatus.LAPSED: ("Lapsed", WRONG, "the approval ran out before it was used"),
}
OVER = frozenset(GrantStatus) - {GrantStatus.READY, GrantStatus.SPENT, GrantStatus.IN_DOUBT}


@dataclass(frozen=True, slots=True)
class Stop:
    """One note of the score. `state` is reached, now, wrong or empty: not there yet."""

    title: str
    mark: str
    state: str = ""
    text: str = ""
    at: datetime | None = None

    @property
    def is_now(self) -> bool:
        return self.state == NOW


@dataclass(frozen=True)
class Progress:
    stops: tuple[Stop, ...]
    is_moving: bool
    held_until: datetime | None = None
    may_undo: bool = False
    is_revocable: bool = False
    result: SafeString | None = None
    result_label: str = ""

    @property
    def seconds_left(self) -> int:
        left = (self.held_until - timezone.now()).total_seconds() if self.held_until else 0
        return max(0, int(left) + 1)


def progress(approval: Approval, votes: list[Vote], *, viewer_id: int) -> Progress | None:
    """None while the approval is pending. `votes` are those that count on the current revision."""
    if approval.status == ApprovalStatus.PENDING:
        return None
    if approval.status == ApprovalStatus.HELD:
        return _held(approval, votes, viewer_id)
    decision = Decision.objects.select_related("decided_by").get(approval=approval)
    grant = Grant.objects.filter(approval=approval).first()
    resumed = _resumed(approval)
    stops = [_decided(approval, decision)]
    if approval.kind == ApprovalKind.IN_DOUBT:
        stops.append(_run_now(approval))
    elif approval.status not in CLOSED:
        stops += [*_run_stops(approval, resumed), *([_granted(grant)] if grant else [])]
    result, label = _result(grant)
    return Progress(
        stops=tuple(stops),
        is_moving=_is_moving(approval, grant, resumed),
        is_revocable=grant is not None and grant.status == GrantStatus.READY,
        result=result,
        result_label=label,
    )


def _held(approval: Approval, votes: list[Vote], viewer_id: int) -> Progress:
    last = votes[-1]
    mine = last.voter_id == viewer_id
    done = DID[Verdict(last.verdict)]
    held = Stop("Held", "fermata", NOW, f"You {done}" if mine else f"{name_of(last.voter)} {done}", last.at)
    ahead = [Stop("Decided", "approved"), Stop("Queued", "queued"), Stop("Resumed", "running")]
    if last.verdict in {Verdict.APPROVE, Verdict.EDIT}:
        ahead.append(Stop("Result", "completed"))
    return Progress(
        stops=(held, *ahead),
        is_moving=True,
        held_until=approval.held_until,
        may_undo=any(vote.voter_id == viewer_id for vote in votes),
    )


def _decided(approval: Approval, decision: Decision) -> Stop:
    outcome = ApprovalStatus(decision.outcome)
    by = f"by {name_of(decision.decided_by)}" if decision.decided_by else ""
    state = REACHED if outcome in GRANTING or outcome == ApprovalStatus.RESPONDED else WRONG
    words = f"{by}: {decision.message}" if by and decision.message else by or decision.message
    chip = settled_chip(approval)
    return Stop(chip.label, chip.mark, state, words, decision.at)


def _run_now(approval: Approval) -> Stop:
    line = status_line(approval.run)
    return Stop(f"Run {line.label.lower()}", line.mark, REACHED if line.is_final else NOW, line.sentence)


def _run_stops(approval: Approval, resumed: datetime | None) -> list[Stop]:
    """Queued and resumed, for the run that asked."""
    head = approval.run.head
    status = RunStatus(head.status)
    if resumed is not None:
        return [Stop("Queued", "queued", REACHED), Stop("Resumed", "running", REACHED, "", resumed)]
    if status in FINISHED:
        return [Stop(f"Run {status.label.lower()}", status.value, WRONG, "", approval.run.finished_at)]
    if status == RunStatus.QUEUED and approval.run.resume_mode in OUTSIDE:
        return [_told(approval), Stop("Resumed", "running")]
    if status == RunStatus.QUEUED:
        return [Stop("Queued", "queued", NOW, "waits for a worker"), Stop("Resumed", "running")]
    if status == RunStatus.RUNNING:
        who = "its agent" if approval.run.resume_mode in OUTSIDE else "a worker"
        return [Stop("Queued", "queued", REACHED), Stop("Resumed", "running", NOW, f"{who} has it")]
    if status == RunStatus.BLOCKED:
        return [Stop("Blocked", "blocked", WRONG, head.detail), Stop("Resumed", "running")]
    return [Stop("Queued", "queued", NOW, status_line(approval.run).sentence), Stop("Resumed", "running")]


def _told(approval: Approval) -> Stop:
    """What the run's agent knows of it: it asks by itself, or is told by webhook."""
    post = WebhookPost.objects.filter(run=approval.run_id).order_by("-sequence").first()
    if post is None:
        return Stop("Queued", "queued", NOW, "waits for its agent to ask")
    if post.state == PostState.DELIVERED:
        return Stop("Queued", "queued", NOW, "its agent was told, and has not taken it up yet", post.settled_at)
    if not post.last_error and post.state == PostState.PENDING:
        return Stop("Queued", "queued", NOW, "its agent is to be told")
    why = f": {post.last_error}" if post.last_error else ""
    return Stop("Queued", "warning", WRONG, f"its agent could not be told by webhook{why}", post.created_at)


def _granted(grant: Grant) -> Stop:
    title, state, text = GRANTS[GrantStatus(grant.status)]
    if state == REACHED and not grant.observed:
        text = "reported by the agent, not observed"
    return Stop(title, "completed" if state != WRONG else "warning", state, text, grant.outcome_at)


def _result(grant: Grant | None) -> tuple[SafeString | None, str]:
    if grant is None or not grant.outcome:
        return None, ""
    label = "What the tool gave" if grant.status == GrantStatus.SUCCEEDED else "What the tool said"
    if not grant.observed:
        label += ", as the agent reports it"
    return pretty(canonical.parse(grant.outcome)), label


def _resumed(approval: Approval) -> datetime | None:
    """When the run took the answer up."""
    gate = Gate.objects.filter(run=approval.run_id, turn=approval.turn, key=approval.key)
    return gate.filter(generation=approval.generation).values_list("delivered_at", flat=True).first()


def _is_moving(approval: Approval, grant: Grant | None, resumed: datetime | None) -> bool:
    if approval.status in CLOSED:
        return False
    if approval.kind == ApprovalKind.IN_DOUBT:
        return approval.run.head.status not in FINISHED
    if grant is not None:
        return grant.status not in OVER
    return resumed is None and approval.run.head.status not in FINISHED
