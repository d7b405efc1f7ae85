"""Everything that a card shows, gathered for one viewer."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.utils.safestring import SafeString

from approvals import canonical, policies, queries
from approvals.models import Approval, Revision, Vote
from approvals.policies import Electorate, Requirements
from approvals.presentation import policy
from approvals.presentation.answers import Action, Answer, actions, answer_form, doubt_actions, doubt_form
from approvals.presentation.claim import ClaimLine, claim_line
from approvals.presentation.diffs import Change, changes
from approvals.presentation.doubt import Doubt, doubt
from approvals.presentation.markdown import agent_words
from approvals.presentation.oddities import texts_of
from approvals.presentation.progress import Progress, progress
from approvals.presentation.run_so_far import RunSoFar, run_so_far
from approvals.queries.around import alike, decided_in_run, similar_decided
from approvals.states import ApprovalKind, Verdict
from runs.clock import database_now
from runs.presentation import text
from runs.presentation.masking import masked
from runs.presentation.values import Row, holds_credentials, rows
from runs.principals import Person
from runs.queries import may_operate, readable_by

PAST_SHOWN = 10


@dataclass(frozen=True)
class Card:
    """`heading` is plain text. `why_not` says why the viewer cannot vote; empty when they can."""

    approval: Approval
    requirements: Requirements
    heading: str
    args: list[Row]
    is_masked: bool
    warnings: list[str]
    words: SafeString
    changes: list[Change]
    superseded_changes: list[Change]
    edited_by: str
    rejected_before: Approval | None
    run: RunSoFar
    earlier: list[Approval]
    similar: list[Approval]
    seats: list[policy.SeatLine]
    rules: list[str]
    votes: list[policy.VoteLine]
    eligibility: str
    why_not: str
    may_undo: bool
    may_revoke: bool
    alike: int
    claim: ClaimLine
    progress: Progress | None
    doubt: Doubt | None
    actions: list[Action] = field(default_factory=list)

    @property
    def may_vote(self) -> bool:
        return not self.why_not and self.progress is None

    def form(self, name: str, **typed: Any) -> Answer | None:
        """The open form for the answer called `name`, if it is open to the viewer; `typed` as its builder takes it."""
        if not self.may_vote or all(action.name != name or action.waits_until for action in self.actions):
            return None
        if self.is_in_doubt:
            return doubt_form(name, **typed)
        return answer_form(self.approval, self.requirements, Verdict(name), has_warnings=bool(self.warnings), **typed)

    @property
    def state(self) -> str:
        """Another text whenever something was done to the approval that its page shows."""
        done = "".join("-" if vote.void else "+" for vote in self.votes)
        return f"{self.approval.status}{done}{self.approval.claimed_by_id or ''}"

    @property
    def seen(self) -> str:
        """What an open page sends back, to be told what changed since."""
        return urlencode({"state": self.state, "review": self.approval.review})

    @property
    def is_in_doubt(self) -> bool:
        return self.approval.kind == ApprovalKind.IN_DOUBT

    @property
    def policy_names(self) -> list[str]:
        return [f"{ref.name} v{ref.version}" for ref in self.requirements.policies]


def build_card(approval: Approval, viewer: User, *, revealed: bool = False) -> Card:
    """`approval` comes with its agent, run, the run's head, and `claimed_by`. `revealed` shows what is masked."""
    requirements = Requirements.from_text(approval.requirements)
    cast = list(approval.votes.select_related("voter", "on_behalf_of"))
    counting = [vote for vote in cast if vote.revision == approval.revision and not vote.void]
    people = {viewer.pk, *(vote.voter_id for vote in counting)}
    electorate = policies.electorate(approval, requirements=requirements, people=people, at=database_now())
    mine = next((vote for vote in counting if vote.voter_id == viewer.pk), None)
    why_not = electorate.why_not(viewer.pk) or _waiting(mine)
    revisions = list(approval.revisions.select_related("author"))
    warnings = text.warnings(*texts_of(approval))
    args = canonical.parse(approval.args)
    shown = progress(approval, counting, viewer_id=viewer.pk)
    in_doubt = approval.kind == ApprovalKind.IN_DOUBT
    return Card(
        approval=approval,
        requirements=requirements,
        heading=_heading(approval),
        args=rows(args, mask=not revealed),
        is_masked=not revealed and (holds_credentials(args) or masked(approval.description) != approval.description),
        warnings=warnings,
        words=agent_words(approval.description if revealed else masked(approval.description)),
        changes=changes(revisions[0].args, approval.args) if len(revisions) > 1 else [],
        superseded_changes=changes(approval.supersedes.args, approval.args) if approval.supersedes else [],
        edited_by=_editor(revisions),
        rejected_before=queries.rejected_lately(agent_id=approval.agent_id, tool=approval.tool, args=approval.args)
        if approval.is_open
        else None,
        run=run_so_far(approval, readable=readable_by(Person(viewer)).filter(pk=approval.run_id).exists()),
        earlier=decided_in_run(approval, viewer=Person(viewer), limit=PAST_SHOWN),
        similar=similar_decided(approval, viewer=Person(viewer), limit=PAST_SHOWN),
        seats=policy.seat_lines(requirements, policies.tally(electorate, counting)),
        rules=policy.rule_lines(requirements, closes_others=approval.closes_others),
        votes=policy.vote_lines(cast, approval),
        eligibility=policy.right_to_vote(electorate, viewer) if approval.is_open else "",
        why_not=why_not,
        may_undo=mine is not None and approval.is_open,
        alike=len(alike(approval, viewer=Person(viewer), limit=PAST_SHOWN)) - 1 if not why_not and shown is None else 0,
        may_revoke=shown is not None and shown.is_revocable and _may_revoke(approval, electorate, viewer),
        claim=claim_line(approval, viewer, may_vote=not why_not),
        progress=shown,
        doubt=doubt(approval) if in_doubt else None,
        actions=doubt_actions(approval.safe_at)
        if in_doubt
        else actions(approval, requirements, has_warnings=bool(warnings)),
    )


def _heading(approval: Approval) -> str:
    if approval.kind == ApprovalKind.IN_DOUBT:
        return f"Did {text.escaped(approval.tool)} happen?"
    return f"{text.escaped(approval.agent.name)} wants to call {text.escaped(approval.tool)}"


def _may_revoke(approval: Approval, electorate: Electorate, viewer: User) -> bool:
    return not electorate.why_not(viewer.pk) or may_operate(Person(viewer), approval.run)


def _waiting(mine: Vote | None) -> str:
    return "" if mine is None else f"You {policy.DID[Verdict(mine.verdict)]}; it waits for others."


def _editor(revisions: list[Revision]) -> str:
    author = revisions[-1].author
    return policy.name_of(author) if author else ""
