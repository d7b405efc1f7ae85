"""Edits: a new revision of the arguments, its digests, and what it takes to decide it."""

from django.contrib.auth.models import User

from approvals import canonical, differences, digests, policies, schemas
from approvals.audit import EventType
from approvals.errors import EditInvalid
from approvals.models import Revision
from approvals.policies import Asked, Requirements
from approvals.secrecy import credentials_in
from approvals.services.case import Case
from approvals.services.freshness import denial
from runs.principals import Person


def revise(case: Case, author: User, args: str) -> None:
    """Put edited arguments (JSON text) in the place of the current ones. Votes on those are void.

    The requirements become those of the action as asked and of the action as edited, together. Raises `EditInvalid`.
    """
    approval = case.approval
    errors = schemas.errors_in(args, approval.args_schema) or _new_credentials(args, approval.args)
    if errors:
        raise EditInvalid(approval.pk, errors)
    edited = canonical.form(args)
    if edited == approval.args:
        raise EditInvalid(approval.pk, [("", "are what they were: approve them instead")])
    needed = policies.required(
        policies.rules_of(approval.team_id),
        agent=approval.agent.name,
        tool=approval.tool,
        args=edited,
        asked=Asked.from_text(approval.asked),
    )
    if needed.denied_by is not None:
        raise EditInvalid(approval.pk, [("", f"are {denial(needed.denied_by)}")])
    _new_revision(case, author, edited, case.requirements.stricter(needed))


def restore(case: Case, author: User) -> None:
    """Take the newest edit back: the arguments and requirements before it return, as a revision of their own."""
    before = Revision.objects.get(approval=case.approval, number=case.approval.revision - 1)
    requirements = Requirements.from_text(before.requirements)
    for stage in case.requirements.escalated[len(requirements.escalated) :]:
        requirements = requirements.escalate(stage)
    _new_revision(case, author, before.args, requirements)


def difference_since(case: Case, review: str) -> str | None:
    """The patch from what the digest `review` stood for to the current arguments; None if it was never current here."""
    seen = Revision.objects.filter(approval=case.approval, review=review).order_by("-number").first()
    return None if seen is None else differences.patch(seen.args, case.approval.args)


def _new_credentials(args: str, before: str) -> list[tuple[str, str]]:
    """What was there before the rule that finds it now must not keep anybody from an edit of something else."""
    old = credentials_in(canonical.parse(before))
    return [found for found in credentials_in(canonical.parse(args)) if found not in old]


def _new_revision(case: Case, author: User, args: str, requirements: Requirements) -> None:
    approval = case.approval
    number, before = approval.revision + 1, approval.args
    approval.votes.filter(revision=approval.revision, void=False).update(void=True)
    action = digests.action_digest(
        team_id=approval.team_id,
        agent_id=approval.agent_id,
        run_id=approval.run_id,
        turn=approval.turn,
        key=approval.key,
        revision=number,
        tool=approval.tool,
        tool_version=approval.tool_version,
        target=approval.target,
        args=args,
    )
    case.change(revision=number, args=args, action=action)
    case.require(requirements)
    Revision.objects.create(
        approval=approval,
        number=number,
        args=args,
        action=action,
        review=approval.review,
        requirements=approval.requirements,
        diff=differences.patch(before, args),
        author=author,
        at=case.now,
    )
    case.record(
        EventType.APPROVAL_EDITED,
        Person(author).actor,
        {"revision": number, "args_before": before, "args": args, "action": action, "person": author.pk},
        person_id=author.pk,
    )
