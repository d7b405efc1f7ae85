"""Any order of everything that people, agents, the clock and administrators do keeps what approvals promise."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from approvals import digests
from approvals.errors import ApprovalError, Refused
from approvals.models import Approval, AuditEvent, Decision, Grant, Policy, Revision, Vote
from approvals.services.cancelling import cancel
from approvals.services.claims import claim, release
from approvals.services.grants import record_outcome, revoke, spend
from approvals.services.settling import settle
from approvals.services.sweeping import sweep
from approvals.services.voting import undo, vote
from approvals.states import GRANT_TRANSITIONS, GRANTING, OPEN, TRANSITIONS, ApprovalStatus, GrantStatus, Verdict
from runs.models import Agent, Membership, Team
from runs.principals import AgentPrincipal, Person
from runs.services.locking import lock_run
from tests.approvals.scenes import ask, close_run, gate_answer, open_on, parked_run, policy

REVIEWERS = ("ada", "bob", "cem")
PEOPLE = (*REVIEWERS, "asker", "outsider")
ARGS = ('{"amount":1}', '{"amount":2}', '{"amount":49,"order":"A-7"}', "[]")


class Approving(RuleBasedStateMachine):
    """One gate of one run. `seen` holds the status of each approval and grant as it was after the last step."""

    @initialize(quorum=st.sampled_from((1, 2)), risk=st.sampled_from(("low", "high")), expires=st.booleans())
    def ask_first(self, quorum: int, risk: str, expires: bool) -> None:
        self.team = Team.objects.create(name=f"team {Team.objects.count()}")
        self.agent = Agent.objects.create(team=self.team, name="agent")
        policy(self.agent, "Quorum", (None, quorum))
        self.people = {name: User.objects.create_user(f"{name} {self.team.pk}") for name in PEOPLE}
        for name in (*REVIEWERS, "asker"):
            Membership.objects.create(user=self.people[name], team=self.team, roles=["reviewer"])
        self.run = parked_run(self.agent)
        self.run.requesters.add(self.people["asker"])
        self.fields = {"risk": risk, "expires_in": timedelta(hours=1) if expires else None}
        self.approval = open_on(self.run, ask(**self.fields))[0]
        self.seen: dict[Any, str] = {}
        self.ended = False

    # --- what happens ------------------------------------------------------------------------------------------

    @rule(
        who=st.sampled_from(PEOPLE),
        verdict=st.sampled_from(Verdict.values),
        args=st.sampled_from(ARGS),
        hold=st.sampled_from((0, 10)),
        stale=st.booleans(),
    )
    def vote(self, who: str, verdict: str, args: str, hold: int, stale: bool) -> None:
        self.approval.refresh_from_db()
        self.attempt(
            lambda: vote(
                approval_id=self.approval.pk,
                voter=self.people[who],
                verdict=verdict,
                review="0" * 64 if stale else self.approval.review,
                args=args if verdict == "edit" else None,
                message="because",
                hold=timedelta(seconds=hold),
            )
        )

    @rule(who=st.sampled_from(PEOPLE), what=st.sampled_from((claim, release)))
    def claim(self, who: str, what: Any) -> None:
        self.attempt(lambda: what(approval_id=self.approval.pk, person=self.people[who]))

    @rule(who=st.sampled_from(PEOPLE))
    def undo(self, who: str) -> None:
        self.attempt(lambda: undo(approval_id=self.approval.pk, voter=self.people[who]))

    @rule(by=st.sampled_from((timedelta(seconds=10), timedelta(hours=1), timedelta(hours=24))))
    def wait(self, by: timedelta) -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE test_clock SET ahead = ahead + %s", (by,))

    @rule(sweeping=st.booleans())
    def settle(self, sweeping: bool) -> None:
        if sweeping:
            sweep()
        else:
            settle(approval_id=self.approval.pk)

    @rule(by_agent=st.booleans())
    def cancel(self, by_agent: bool) -> None:
        by = AgentPrincipal(self.agent, None) if by_agent else Person(self.people["ada"])
        self.attempt(lambda: cancel(approval_id=self.approval.pk, by=by))

    @precondition(lambda self: not self.ended)
    @rule(amount=st.integers(1, 2))
    def ask_again(self, amount: int) -> None:
        self.approval = open_on(self.run, ask(args={"amount": amount}, **self.fields))[0]

    @rule()
    def end_run(self) -> None:
        self.in_run(lambda cursor: close_run(cursor, self.run, reason="over"))
        self.ended = True

    @rule(key=st.sampled_from(("step-1", "step-2")), right=st.booleans())
    def spend(self, key: str, right: bool) -> None:
        self.approval.refresh_from_db()
        action = self.approval.action if right else "0" * 64
        self.in_run(lambda cursor: spend(cursor, approval_id=self.approval.pk, action=action, spent_key=key))

    @rule(key=st.sampled_from(("step-1", "step-2")), succeeded=st.booleans())
    def report(self, key: str, succeeded: bool) -> None:
        self.in_run(
            lambda cursor: record_outcome(
                cursor, approval_id=self.approval.pk, spent_key=key, succeeded=succeeded, outcome="{}", observed=True
            )
        )

    @rule(who=st.sampled_from(PEOPLE))
    def revoke(self, who: str) -> None:
        self.attempt(lambda: revoke(approval_id=self.approval.pk, by=Person(self.people[who]), reason="no"))

    @rule(who=st.sampled_from(REVIEWERS))
    def leave_or_join(self, who: str) -> None:
        memberships = Membership.objects.filter(user=self.people[who], team=self.team)
        if not memberships.delete()[0]:
            Membership.objects.create(user=self.people[who], team=self.team, roles=["reviewer"])

    @rule(count=st.integers(1, 2))
    def tighten(self, count: int) -> None:
        number = Policy.objects.filter(team=self.team).count()
        if number < 3:
            policy(self.agent, f"More {number}", (None, count))

    # --- what must hold ----------------------------------------------------------------------------------------

    @invariant()
    def statuses_move_as_the_tables_say(self) -> None:
        moves = [(a, TRANSITIONS, ApprovalStatus) for a in self.approvals()]
        moves += [(grant, GRANT_TRANSITIONS, GrantStatus) for grant in self.grants()]
        for thing, table, kind in moves:
            before, now = self.seen.get((kind, thing.pk)), kind(thing.status)
            assert before in (None, now) or self.reachable(table, before, now), f"{before} to {now}"
            self.seen[kind, thing.pk] = now

    @invariant()
    def what_is_settled_is_decided_once_and_told(self) -> None:
        for approval in self.approvals():
            decision = Decision.objects.filter(approval=approval).first()
            assert (decision is None) == approval.is_open
            if decision is not None:
                assert (decision.outcome, decision.action, decision.args) == (
                    approval.status,
                    approval.action,
                    approval.args,
                )
        assert self.approvals().filter(status__in=sorted(OPEN)).count() <= 1

    @invariant()
    def only_approved_actions_have_a_grant_and_exactly_theirs(self) -> None:
        for approval in self.approvals():
            grant = Grant.objects.filter(approval=approval).first()
            assert (grant is not None) == (approval.status in GRANTING)
            if grant is not None:
                assert (grant.action, grant.args) == (approval.action, approval.args)
        assert self.grants().filter(spent_at__isnull=True, status=GrantStatus.READY).count() <= 1

    @invariant()
    def nobody_votes_twice_or_who_must_not(self) -> None:
        live = Vote.objects.filter(approval__run=self.run, void=False)
        assert live.count() == live.values("approval", "revision", "voter").distinct().count()
        assert not live.filter(voter__in=[self.people["asker"], self.people["outsider"]]).exists()
        for approval in self.approvals().filter(status__in=sorted(GRANTING)):
            agreeing = live.filter(approval=approval, revision=approval.revision, verdict__in=["approve", "edit"])
            assert agreeing.exists()
            assert approval.risk != "high" or agreeing.filter(verdict="approve").exists()

    @invariant()
    def the_digests_are_those_of_what_is_stored(self) -> None:
        for approval in self.approvals():
            action = digests.action_digest(
                team_id=approval.team_id,
                agent_id=approval.agent_id,
                run_id=approval.run_id,
                turn=approval.turn,
                key=approval.key,
                revision=approval.revision,
                tool=approval.tool,
                tool_version=approval.tool_version,
                target=approval.target,
                args=approval.args,
            )
            review = digests.review_digest(
                action=action,
                requirements=approval.requirements,
                snapshot_digest=approval.snapshot_digest,
                title=approval.title,
                description=approval.description,
            )
            assert (approval.action, approval.review) == (action, review)
            revision = Revision.objects.get(approval=approval, number=approval.revision)
            assert (revision.args, revision.action) == (approval.args, approval.action)

    @invariant()
    def the_gate_hears_the_first_outcome(self) -> None:
        answer = gate_answer(self.approval)
        if answer is not None:
            told = Approval.objects.get(pk=answer["approval"])
            assert told.status == answer["outcome"]
            assert answer["action"] == (told.action if told.status in GRANTING else None)

    # --- inside ------------------------------------------------------------------------------------------------

    def attempt(self, call: Any) -> None:
        """What is refused changes nothing of the vote, and is on record."""
        before = AuditEvent.objects.count()
        try:
            call()
        except Refused:
            assert AuditEvent.objects.count() > before

    def in_run(self, call: Any) -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                lock_run(cursor, self.run.pk)
                call(cursor)
        except ApprovalError:
            pass

    def approvals(self) -> Any:
        return Approval.objects.filter(run=self.run)

    def grants(self) -> Any:
        return Grant.objects.filter(approval__run=self.run)

    @staticmethod
    def reachable(table: Any, before: Any, now: Any) -> bool:
        """In one move, or in two that one step may make: held, then pending again, then over."""
        return now in table[before] or any(now in table[between] for between in table[before])


@pytest.mark.django_db
@pytest.mark.timeout(600)
def test_any_order_of_events():
    run_state_machine_as_test(
        Approving,
        settings=settings(
            max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
