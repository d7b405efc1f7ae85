"""Who must decide: every policy that matches applies, and the agent can only tighten."""

from datetime import timedelta

import pytest

from approvals.errors import (
    AlreadyDecided,
    AlreadyVoted,
    EditInvalid,
    InvalidAsk,
    NotAllowed,
    NotEligible,
    NotVisible,
    StaleReview,
    StepUpNeeded,
    VoteInvalid,
)
from approvals.models import Approval, Policy
from approvals.policies import Requirements
from approvals.services.settling import settle
from approvals.services.stepup import confirm
from approvals.services.voting import undo
from approvals.states import ApprovalStatus, Risk
from tests.approvals.scenes import HOLD, ask, cast, events, gate_answer, in_group, open_on, opened, parked_run, policy

pytestmark = pytest.mark.django_db


def needs(approval) -> Requirements:
    return Requirements.from_text(approval.requirements)


def test_requirements_survive_their_text(agent):
    policy(agent, "Money", ("finance", 2), ("legal", 1), deadline=timedelta(hours=1), risk="medium")
    approval = opened(agent, expires_in=timedelta(minutes=30), grant_life=timedelta(minutes=5))

    assert needs(approval).to_text() == approval.requirements


def test_two_of_finance_and_one_of_legal(agent, person):
    policy(agent, "Money", ("finance", 2), ("legal", 1), tools=["refund"])
    ada, bob, lea = (
        in_group(person("ada"), "finance"),
        in_group(person("bob"), "finance"),
        in_group(person("lea"), "legal"),
    )
    approval = opened(agent)

    assert cast(approval, ada).status == ApprovalStatus.PENDING
    assert cast(approval, lea).status == ApprovalStatus.PENDING
    assert cast(approval, bob).status == ApprovalStatus.APPROVED


def test_one_rejection_suffices(agent, person):
    policy(agent, "Money", ("finance", 2))
    ada, bob = in_group(person("ada"), "finance"), in_group(person("bob"), "finance")
    approval = opened(agent)
    cast(approval, ada)

    assert cast(approval, bob, "reject").status == ApprovalStatus.REJECTED


def test_a_policy_may_ask_for_more_rejections(agent, person):
    Policy.objects.all().update(is_active=False)
    policy(agent, "Careful", (None, 2), rejections=2)
    approval = opened(agent)

    assert cast(approval, person("ada"), "reject").status == ApprovalStatus.PENDING
    assert cast(approval, person("bob"), "reject").status == ApprovalStatus.REJECTED


def test_nobody_counts_twice(agent, person):
    """policy-bot#33 (C05)."""
    policy(agent, "Pairs", (None, 2))
    ada = person("ada")
    approval = opened(agent)
    cast(approval, ada)

    with pytest.raises(AlreadyVoted):
        cast(approval, ada)

    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.PENDING
    assert approval.votes.filter(void=False).count() == 1


def test_an_edit_voids_the_votes_before_it(agent, person):
    """orbit PR#644, isms#197 (C05): no approval survives a rewrite of what was approved."""
    policy(agent, "Pairs", (None, 2))
    approval = opened(agent)
    cast(approval, person("ada"))

    assert cast(approval, person("bob"), "edit", args='{"order":"A-7","amount":1}').status == ApprovalStatus.PENDING
    assert cast(approval, person("cem")).status == ApprovalStatus.EDITED


def test_an_empty_group_never_passes(agent, person):
    """policy-bot#33 (C05): zero eligible people must not mean zero needed."""
    policy(agent, "Nobody", ("empty", 1))
    approval = opened(agent)

    assert cast(approval, person("ada")).status == ApprovalStatus.PENDING


def test_without_any_policy_a_reviewer_is_still_asked(agent, person):
    Policy.objects.all().update(is_active=False)
    approval = opened(agent)

    with pytest.raises(NotEligible):
        cast(approval, person("olga", "operator"))
    assert cast(approval, person("ada")).status == ApprovalStatus.APPROVED


def test_a_mind_can_be_changed_until_it_counts(agent, person):
    policy(agent, "Pairs", (None, 2))
    ada = person("ada")
    approval = opened(agent)
    cast(approval, ada)

    assert cast(approval, ada, "reject").status == ApprovalStatus.REJECTED
    assert events(approval)[-3:] == ["vote.voided", "vote.cast", "approval.settled"]


def test_a_vote_that_does_not_decide_yet_can_be_taken_back(agent, person):
    policy(agent, "Pairs", (None, 2))
    ada, bob = person("ada"), person("bob")
    approval = opened(agent)
    cast(approval, ada)
    undo(approval_id=approval.pk, voter=ada)

    assert cast(approval, bob).status == ApprovalStatus.PENDING


@pytest.mark.parametrize("how", ["requester", "owner", "key"])
def test_whoever_asked_cannot_decide(agent, person, how):
    """windmill PR#10262 (C06): a requester self-approved through a second path."""
    ada = person("ada")
    fields = {}
    if how == "owner":
        agent.owners.add(ada)
    if how == "key":
        fields["key"] = agent.keys.create(prefix="p", digest=bytes(32), scopes=["runs:read"], created_by=ada)
    run = parked_run(agent, **fields)
    if how == "requester":
        run.requesters.add(ada)
    approval = open_on(run, ask())[0]

    with pytest.raises(NotEligible, match="somebody else must decide"):
        cast(approval, ada)
    assert cast(approval, person("bob")).status == ApprovalStatus.APPROVED


def test_a_superuser_has_no_vote_by_being_one(agent, admin_user):
    """mastra#22575 (C06)."""
    with pytest.raises(NotVisible):
        cast(opened(agent), admin_user)


def test_an_outsider_gets_the_same_as_for_what_does_not_exist_and_is_on_record(agent, django_user_model):
    """mastra#22575 (C06)."""
    approval = opened(agent)
    with pytest.raises(NotVisible):
        cast(approval, django_user_model.objects.create_user("eve"))

    assert events(approval) == ["approval.requested", "attempt.refused"]


def test_a_member_of_a_pool_may_decide_from_outside_the_team(agent, django_user_model):
    Policy.objects.all().update(is_active=False)
    policy(agent, "Money", ("finance", 1))
    fay = in_group(django_user_model.objects.create_user("fay"), "finance")

    assert cast(opened(agent), fay).status == ApprovalStatus.APPROVED


def test_a_requested_group_is_a_requirement_and_makes_nobody_eligible(agent, django_user_model, person):
    fay = in_group(django_user_model.objects.create_user("fay"), "finance")
    ada = in_group(person("ada"), "finance")
    approval = opened(agent, groups=("finance",))

    assert cast(approval, person("bob")).status == ApprovalStatus.PENDING
    with pytest.raises(NotVisible):
        cast(approval, fay)
    assert cast(approval, ada).status == ApprovalStatus.APPROVED


def test_a_requested_person_must_approve_too(agent, person):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent, users=("ada",))

    assert cast(approval, bob).status == ApprovalStatus.PENDING
    assert cast(approval, ada).status == ApprovalStatus.APPROVED


def test_unknown_reviewers_are_named(agent):
    with pytest.raises(InvalidAsk) as wrong:
        opened(agent, groups=("nobodies",), users=())
    assert wrong.value.errors == [("/0/reviewers/groups/0", "is no group here")]
    with pytest.raises(InvalidAsk) as wrong:
        opened(agent, users=("nemo",))
    assert wrong.value.errors == [("/0/reviewers/users/0", "is nobody here")]


def test_the_agent_can_raise_the_risk_and_not_lower_it(agent):
    policy(agent, "Refunds", (None, 1), tools=["refund"], risk="high")

    assert opened(agent, risk="low").risk == Risk.HIGH


def test_a_raised_risk_brings_in_the_policies_for_that_risk(agent, person):
    policy(agent, "Refunds", (None, 1), tools=["ref*"], risk="high")
    policy(agent, "High", ("finance", 1), risk_at_least="high")

    assert "group:finance" in opened(agent, risk="low").pools


def test_tools_match_whatever_their_case(agent):
    policy(agent, "Refunds", ("finance", 1), tools=["Refund"])

    assert "group:finance" in opened(agent, tool="REFUND").pools


def test_a_condition_is_a_schema_over_the_arguments(agent):
    policy(agent, "Large", ("finance", 1), condition='{"properties":{"amount":{"minimum":100}},"required":["amount"]}')

    assert "group:finance" not in opened(agent, args={"amount": 99}).pools
    assert "group:finance" in opened(agent, args={"amount": 100}).pools


def test_a_condition_that_cannot_be_evaluated_counts_as_matched(agent):
    policy(agent, "Broken", ("finance", 1), condition='{"$ref":"#"}')

    assert "group:finance" in opened(agent).pools


def test_an_edit_runs_the_policies_again_and_keeps_what_was_asked_before(agent, person):
    policy(agent, "Large", ("finance", 1), condition='{"properties":{"amount":{"minimum":100}}}')
    ada, fay = person("ada"), in_group(person("fay"), "finance")
    approval = opened(agent, args={"amount": 5})

    assert cast(approval, ada, "edit", args='{"amount":500}').status == ApprovalStatus.PENDING
    assert cast(approval, fay).status == ApprovalStatus.EDITED


def test_an_editor_does_not_approve_their_own_edit_of_high_risk(agent, person):
    approval = opened(agent, risk="high")

    assert cast(approval, person("ada"), "edit", args='{"amount":1}').status == ApprovalStatus.PENDING
    assert cast(approval, person("bob")).status == ApprovalStatus.EDITED


def test_a_policy_may_forbid_edits_and_ask_for_reasons(agent, reviewer):
    policy(agent, "Strict", (None, 1), allow_edits=False, require_reason=True)
    approval = opened(agent)

    with pytest.raises(VoteInvalid):
        cast(approval, reviewer, message="  ")
    with pytest.raises(NotAllowed, match="no edits"):
        cast(approval, reviewer, "edit", args="{}", message="less")
    assert cast(approval, reviewer, message="it is fine").status == ApprovalStatus.APPROVED


def test_the_agent_names_the_verdicts_that_it_takes_and_rejecting_is_always_one(agent, reviewer):
    approval = opened(agent, allowed=("approve",))

    with pytest.raises(NotAllowed):
        cast(approval, reviewer, "respond", message="no")
    assert cast(approval, reviewer, "reject").status == ApprovalStatus.REJECTED


def test_nobody_answers_alone_what_needs_two(agent, person):
    policy(agent, "Pairs", (None, 2))

    with pytest.raises(NotAllowed, match="alone"):
        cast(opened(agent), person("ada"), "respond", message="42")


def test_step_up_is_for_one_card_one_digest_one_verdict_once_for_two_minutes(agent, reviewer, move_clock):
    policy(agent, "Serious", (None, 2), require_reauthentication=True)
    approval = opened(agent)

    with pytest.raises(StepUpNeeded):
        cast(approval, reviewer)
    confirm(approval_id=approval.pk, person=reviewer, review=approval.review, verdict="approve")
    with pytest.raises(StepUpNeeded):
        cast(approval, reviewer, "reject")
    cast(approval, reviewer)
    undo(approval_id=approval.pk, voter=reviewer)
    with pytest.raises(StepUpNeeded):
        cast(approval, reviewer)
    confirm(approval_id=approval.pk, person=reviewer, review=approval.review, verdict="approve")
    move_clock(timedelta(minutes=2))
    with pytest.raises(StepUpNeeded):
        cast(approval, reviewer)


def test_a_tighter_policy_applies_at_once_and_makes_open_tabs_stale(agent, person):
    ada, fay = person("ada"), in_group(person("fay"), "finance")
    approval = opened(agent)
    policy(agent, "Money", ("finance", 1))

    with pytest.raises(StaleReview):
        cast(approval, ada)
    assert events(approval) == ["approval.requested", "approval.recounted", "attempt.refused"]
    assert cast(approval, ada).status == ApprovalStatus.PENDING
    assert cast(approval, fay).status == ApprovalStatus.APPROVED


def test_a_tighter_policy_reaches_what_is_held(agent, person, move_clock):
    approval = opened(agent)
    cast(approval, person("ada"), hold=HOLD)
    policy(agent, "Money", ("finance", 1))
    move_clock(HOLD)

    assert settle(approval_id=approval.pk).status == ApprovalStatus.PENDING


def test_a_looser_policy_changes_nothing_that_is_open(agent, person):
    made = policy(agent, "Money", ("finance", 1))
    approval = opened(agent)
    made.is_active = False
    made.save(update_fields=["is_active"])

    assert cast(approval, person("ada")).status == ApprovalStatus.PENDING


def test_a_held_vote_of_somebody_who_lost_the_right_does_not_count(agent, person, move_clock):
    ada = person("ada")
    approval = opened(agent)
    cast(approval, ada, hold=HOLD)
    ada.memberships.all().delete()
    move_clock(HOLD)

    assert settle(approval_id=approval.pk).status == ApprovalStatus.PENDING


def test_what_was_rejected_lately_needs_a_second_approver(agent, person):
    cast(opened(agent), person("ada"), "reject", message="never")
    again = opened(agent)

    assert needs(again).approvers == 2
    assert needs(opened(agent, args={"order": "A-8"})).approvers == 1
    assert cast(again, person("bob")).status == ApprovalStatus.PENDING
    assert cast(again, person("cem")).status == ApprovalStatus.APPROVED


def test_a_policy_sets_the_least_time_that_an_agent_may_ask_for(agent):
    policy(agent, "Patient", (None, 1), minimum_deadline=timedelta(hours=1))
    approval = opened(agent, expires_in=timedelta(minutes=1))

    assert approval.expires_at - approval.created_at == timedelta(hours=1)


def test_the_shortest_grant_life_wins(agent, reviewer):
    policy(agent, "Brief", (None, 1), grant_life=timedelta(minutes=5))
    grant = cast(opened(agent, grant_life=timedelta(hours=1)), reviewer).grant

    assert grant.expires_at - grant.created_at == timedelta(minutes=5)


def test_the_decision_keeps_the_policy_versions(agent, reviewer):
    made = policy(agent, "Money", (None, 1))
    decision = cast(opened(agent), reviewer).decision

    assert f'{{"id":{made.pk},"name":"Money","version":1}}' in decision.policies
    assert Approval.objects.get().decision == decision


def test_what_a_policy_denies_is_rejected_at_once_and_on_record(agent):
    policy(agent, "No wires", tools=["wire*"], deny=True)
    approval = opened(agent, tool="wire.send")

    assert approval.status == ApprovalStatus.REJECTED
    assert (gate_answer(approval)["outcome"], gate_answer(approval)["by"]) == ("rejected", None)
    assert gate_answer(approval)["message"] == "denied by the policy 'No wires'"
    assert events(approval) == ["approval.requested", "approval.settled"]
    assert opened(agent).status == ApprovalStatus.PENDING


def test_what_is_denied_meanwhile_cannot_be_approved(agent, reviewer):
    approval = opened(agent)
    policy(agent, "Stop refunds", tools=["refund"], deny=True)

    with pytest.raises(AlreadyDecided) as late:
        cast(approval, reviewer)
    assert (late.value.outcome, late.value.by) == ("rejected", None)


def test_an_edit_does_not_lead_into_what_is_denied(agent, reviewer):
    policy(agent, "No large ones", deny=True, condition='{"properties":{"amount":{"minimum":100}}}')
    approval = opened(agent, args={"amount": 5})

    with pytest.raises(EditInvalid, match="denied by the policy"):
        cast(approval, reviewer, "edit", args='{"amount":100}')
