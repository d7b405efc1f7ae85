"""An approval in somebody's hands: locked, with today's clock, and the few moves that every service makes with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from approvals import audit, digests, policies
from approvals.audit import EventType
from approvals.models import Approval, Vote
from approvals.policies import Electorate, Requirements
from approvals.services.conclusion import conclude
from approvals.services.premises import rejection_comes
from approvals.states import CLOSED, GRANTING, OPEN, ApprovalKind, ApprovalStatus
from runs.clock import database_now
from runs.hooks import Cursor
from runs.services.answering import answer_gate
from runs.services.locking import LockedRun, lock_run

ANSWERED_FIRST = "another question of this gate was answered first"


@dataclass
class Case:
    """An approval under the locks of its run and its row; `now` was read after both were held."""

    cursor: Cursor
    run: LockedRun
    approval: Approval
    requirements: Requirements
    now: datetime

    def electorate(self, people: Iterable[int]) -> Electorate:
        """The rights that `people` (ids) and everybody who voted have now."""
        everybody = {*people, *self.approval.votes.filter(void=False).values_list("voter_id", flat=True)}
        return policies.electorate(self.approval, requirements=self.requirements, people=everybody, at=self.now)

    def votes(self) -> list[Vote]:
        """The votes on the current revision that were not taken back."""
        return list(self.approval.votes.filter(revision=self.approval.revision, void=False).select_related("voter"))

    def note_votes(self) -> list[Vote]:
        """The same, and whose seats they fill written beside the approval, where lists can find it."""
        votes = self.votes()
        voted_by = sorted({person for vote in votes for person in policies.people_of(vote)})
        if voted_by != self.approval.voted_by:
            self.change(voted_by=voted_by)
        return votes

    def change(self, **fields: Any) -> None:
        """Write these fields of the approval."""
        for name, value in fields.items():
            setattr(self.approval, name, value)
        self.approval.save(update_fields=list(fields))

    def require(self, requirements: Requirements) -> None:
        """Put other requirements in force; what people reviewed until now is stale."""
        self.requirements = requirements
        text = requirements.to_text()
        review = digests.review_digest(
            action=self.approval.action,
            requirements=text,
            snapshot_digest=self.approval.snapshot_digest,
            title=self.approval.title,
            description=self.approval.description,
        )
        self.change(
            requirements=text,
            pools=sorted(requirements.pools),
            risk=requirements.risk,
            grant_life=requirements.grant_life,
            review=review,
        )

    def record(self, event: EventType, actor: str, body: dict[str, Any], *, person_id: int | None = None) -> None:
        """Write an event into the approval's chain."""
        audit.append(
            self.cursor,
            chain=f"approval:{self.approval.pk}",
            type=event,
            actor=actor,
            team_id=self.approval.team_id,
            person_id=person_id,
            body={"approval": str(self.approval.pk), "run": str(self.approval.run_id), **body},
        )

    def settle(self, outcome: ApprovalStatus, *, actor: str, message: str = "", by: User | None = None) -> None:
        """Reach `outcome`, by the person `by` if it is a person's: decision, grant, event, and the gate's answer."""
        if outcome == ApprovalStatus.REJECTED and by is not None:
            rejection_comes(self.cursor, self.approval.agent_id)
        settled = conclude(
            self.cursor,
            approval_id=self.approval.pk,
            outcome=outcome,
            actor=actor,
            message=message,
            decided_by=by.pk if by else None,
            grants=outcome in GRANTING and self.approval.kind == ApprovalKind.ACTION,
        )
        if settled is None:
            raise RuntimeError(f"approval {self.approval.pk} was settled under its own lock")
        if self.approval.kind == ApprovalKind.ACTION:
            answer_gate(
                self.cursor,
                run_id=settled.run_id,
                turn=settled.turn,
                key=settled.key,
                answer=gate_answer(
                    self.approval.pk, outcome, message=message, args=settled.args, action=settled.action, by=by
                ),
            )
            if self.approval.closes_others and _answers(outcome, by):
                self._close_others()
        self.approval.refresh_from_db()

    def _close_others(self) -> None:
        """This one's answer is the gate's: cancel its other questions. The run's lock is held, so nobody else is here.

        A run is parked at one gate at a time: what it has open in this turn belongs to this one.
        """
        asked = Approval.objects.filter(run=self.approval.run_id, turn=self.approval.turn, kind=ApprovalKind.ACTION)
        # The status is looked at here, so that no index of what is open fits: they are looked up by their run.
        others = [pk for pk, status in asked.order_by("pk").values_list("pk", "status") if status in OPEN]
        for pk in others:
            other = take(self.cursor, approval_id=pk, run_id=self.approval.run_id)
            other.settle(ApprovalStatus.CANCELLED, actor="system", message=ANSWERED_FIRST)


def _answers(outcome: ApprovalStatus, by: User | None) -> bool:
    """Whether it is a person's, a rule's or the clock's. A denial by policy and a cancellation are no answers."""
    return by is not None if outcome == ApprovalStatus.REJECTED else outcome not in CLOSED


def gate_answer(
    approval_id: UUID, outcome: ApprovalStatus, *, message: str, args: str, action: str, by: User | None
) -> dict[str, str | None]:
    """What the run is told: arguments and action only when it may perform them."""
    granting = outcome in GRANTING
    return {
        "outcome": outcome.value,
        "approval": str(approval_id),
        "message": message,
        "args": args if granting else None,
        "action": action if granting else None,
        "by": display_name(by) if by else None,
    }


def display_name(person: User) -> str:
    return person.get_full_name() or person.get_username()


def take(cursor: Cursor, *, approval_id: UUID, run_id: UUID) -> Case:
    """Lock the run, then the approval, then read the clock. Call it inside a transaction."""
    run = lock_run(cursor, run_id)
    approval = Approval.objects.select_for_update(no_key=True).get(pk=approval_id)
    return Case(
        cursor=cursor,
        run=run,
        approval=approval,
        requirements=Requirements.from_text(approval.requirements),
        now=database_now(),
    )
