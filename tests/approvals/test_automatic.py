"""Rules that approve without a person: within their caps, never for high risk, and stopped by one switch."""

from datetime import timedelta
from decimal import Decimal

import pytest

from approvals.errors import ChangeRefused
from approvals.models import Approval, AutomaticRule, AutomaticUse, Policy
from approvals.services.automatic import stop
from approvals.services.sweeping import sweep
from approvals.states import ApprovalStatus
from runs.clock import database_now
from runs.models import Agent
from tests.approvals.scenes import cast, events, gate_answer, opened, policy

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _one_policy(team):
    """One policy, which allows automatic approval."""
    Policy.objects.update(is_active=False)
    made = Policy.objects.create(team=team, name="Allowing")
    made.versions.create(number=1, quorum='[{"count":1,"group":null}]', allow_automatic=True)


@pytest.fixture
def rule(team, person):
    amy = person("amy", "admin")

    def make(**fields) -> AutomaticRule:
        return AutomaticRule.objects.create(
            **{
                "team": team,
                "name": "Small refunds",
                "tools": ["refund"],
                "window": timedelta(days=3650),
                "max_count": 10,
                "ends_at": database_now() + timedelta(days=30),
                "created_by": amy,
                **fields,
            }
        )

    return make


def outcome(approval) -> str:
    sweep()
    return Approval.objects.values_list("status", flat=True).get(pk=approval.pk)


def test_it_approves_what_it_matches(agent, rule):
    rule(condition='{"properties":{"amount":{"maximum":50}},"required":["amount"]}')
    small, large = opened(agent, args={"amount": 50}), opened(agent, args={"amount": 51})

    assert (outcome(small), outcome(large)) == (ApprovalStatus.APPROVED, ApprovalStatus.PENDING)
    small.refresh_from_db()
    assert small.decision.decided_by is None
    assert small.decision.message == "by the automatic rule 'Small refunds'"
    assert gate_answer(small)["by"] is None
    assert events(small)[-1] == "approval.settled"


@pytest.mark.parametrize("fields", [{"risk": "high"}, {"tool": "wire"}, {"users": ("amy",)}])
def test_it_does_not_approve(agent, rule, fields):
    rule()

    assert outcome(opened(agent, **fields)) == ApprovalStatus.PENDING


def test_every_policy_must_allow_it(agent, rule):
    rule()
    policy(agent, "Refunds", (None, 1), tools=["refund"])

    assert outcome(opened(agent)) == ApprovalStatus.PENDING


def test_a_policy_that_forbids_it_meanwhile_is_heard(agent, rule):
    rule()
    approval = opened(agent)
    policy(agent, "Refunds", (None, 1), tools=["refund"])

    assert outcome(approval) == ApprovalStatus.PENDING
    approval.refresh_from_db()
    assert approval.automatic is None


def test_it_does_not_approve_what_was_rejected_lately(agent, rule, reviewer):
    cast(opened(agent), reviewer, "reject")
    rule()

    assert outcome(opened(agent)) == ApprovalStatus.PENDING


def test_it_counts_for_each_agent_and_window(agent, team, rule, start_of_next):
    hour = timedelta(hours=1)
    start_of_next(hour)
    rule(max_count=2, window=hour)
    other = Agent.objects.create(team=team, name="other")

    outcomes = [outcome(opened(agent, args={"order": n})) for n in range(3)]
    assert outcomes == ["approved", "approved", "pending"]
    assert outcome(opened(other)) == "approved"
    start_of_next(hour)
    assert outcome(opened(agent, args={"order": 4})) == "approved"


def test_it_sums_an_argument(agent, rule):
    rule(sum_of="/amount", max_sum=Decimal(100))

    outcomes = [outcome(opened(agent, args={"amount": amount, "n": n})) for n, amount in enumerate((60, 41, 40, 1))]
    assert outcomes == ["approved", "pending", "approved", "pending"]
    assert AutomaticUse.objects.get().total == 100


@pytest.mark.parametrize(
    "args", [{}, {"amount": "5"}, {"amount": -5}, {"amount": True}, {"amount": [5]}, {"amount": 101}]
)
def test_what_cannot_be_summed_waits_for_people(agent, rule, args):
    rule(sum_of="/amount", max_sum=Decimal(100))

    assert outcome(opened(agent, args=args)) == ApprovalStatus.PENDING


def test_a_condition_that_cannot_be_evaluated_does_not_match(agent, rule):
    rule(condition='{"$ref":"#"}')

    assert outcome(opened(agent)) == ApprovalStatus.PENDING


def test_it_ends_by_itself(agent, rule, move_clock):
    rule(ends_at=database_now() + timedelta(minutes=1))
    before = opened(agent)
    move_clock(timedelta(minutes=1))

    assert outcome(before) == ApprovalStatus.PENDING


def test_the_kill_switch_stops_it_at_once(agent, team, rule, person):
    rule()
    approval = opened(agent)
    with pytest.raises(ChangeRefused):
        stop(team=team, by=person("rob"))
    for _ in range(2):
        stop(team=team, by=person(f"olga{_}", "operator"), reason="it went wild")

    assert outcome(approval) == ApprovalStatus.PENDING
    assert team.automatic_stops.count() == 1


def test_a_person_may_be_faster(agent, rule, reviewer):
    rule()
    approval = cast(opened(agent), reviewer, "reject")

    assert outcome(approval) == ApprovalStatus.REJECTED
