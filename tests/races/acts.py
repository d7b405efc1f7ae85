"""What each event does. A function looks at what a person or a worker looks at before they act, and gives back the act.

Between the two the other event may happen. `seat`, 0 or 1, says which of the two racers it is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import connection, transaction

from approvals import canonical
from approvals.models import Approval, AutomaticRule, Revision
from approvals.policies.drafts import PolicyDraft
from approvals.services import automatic, changes, consuming, doubt, grants, policymaking, settling, sweeping, voting
from approvals.services.cancelling import cancel
from runs.clock import database_now
from runs.errors import WrongState
from runs.models import Membership, RunHead
from runs.principals import AgentPrincipal, Person
from runs.services.controlling import cancel_run
from runs.services.external import claim_external, finish_external
from runs.services.locking import lock_run
from runs.states import RunStatus, SuspendReason
from tests.approvals.scenes import KEY, ask, open_on
from tests.races.places import HOLD, PEOPLE, Scene, edited, person, the_agent

Act = Callable[[], object]
GRANT_LIFE = timedelta(hours=24)


def vote(verdict: str, *, hold: timedelta = timedelta(0), **fields: Any) -> Callable[[Scene, int], Act]:
    def prepare(scene: Scene, seat: int) -> Act:
        voter, review = person(PEOPLE[seat]), Approval.objects.get(pk=scene.asks).review
        return lambda: voting.vote(
            approval_id=scene.asks, voter=voter, verdict=verdict, review=review, hold=hold, **fields
        )

    return prepare


def edit(scene: Scene, seat: int) -> Act:
    return vote("edit", args=edited(Approval.objects.get(pk=scene.asks), 1 + seat))(scene, seat)


def do_undo(scene: Scene, seat: int) -> Act:
    voter = person("cem")
    return lambda: voting.undo(approval_id=scene.approval, voter=voter)


def do_claims(service: Callable[..., object]) -> Callable[[Scene, int], Act]:
    def prepare(scene: Scene, seat: int) -> Act:
        who = person(PEOPLE[seat])
        return lambda: service(approval_id=scene.asks, person=who)

    return prepare


def do_ask(*, same: bool) -> Callable[[Scene, int], Act]:
    """The run comes to the same gate again, with the same action or another."""

    def prepare(scene: Scene, seat: int) -> Act:
        approval = Approval.objects.select_related("run__agent").get(pk=scene.approval)
        proposed = Revision.objects.get(approval=approval, number=1).args
        args = canonical.parse(proposed if same else edited(approval, 100 + seat))
        question = ask(tool=approval.tool, args=args)
        return lambda: open_on(approval.run, question)

    return prepare


def do_after(wait: timedelta, act: Callable[[Scene], object]) -> Callable[[Scene, int], Act]:
    """The clock comes to a moment, and somebody looks."""

    def prepare(scene: Scene, seat: int) -> Act:
        def pass_time() -> object:
            with connection.cursor() as cursor:
                cursor.execute("UPDATE test_clock SET ahead = greatest(ahead, %s)", (wait + timedelta(seconds=1),))
            return act(scene)

        return pass_time

    return prepare


def settle(scene: Scene, seat: int) -> Act:
    """The hold is over, and the sweeper comes, or an open page asks."""
    look = (lambda _: sweeping.sweep()) if seat else (lambda held: settling.settle(approval_id=held.approval))
    return do_after(HOLD, look)(scene, seat)


def do_cancel(scene: Scene, seat: int) -> Act:
    by = Person(person("ops")) if seat else AgentPrincipal(the_agent(), None)
    return lambda: cancel(approval_id=scene.asks, by=by)


def do_cancel_run(scene: Scene, seat: int) -> Act:
    return lambda: cancel_run(run_id=scene.run, actor="system")


def do_policy(**fields: Any) -> Callable[[Scene, int], Act]:
    """Another administrator confirms a stricter policy, and what is open follows."""

    def prepare(scene: Scene, seat: int) -> Act:
        approval = Approval.objects.select_related("team").get(pk=scene.approval)
        draft = PolicyDraft(name=f"Stricter {uuid4()}", tools=(approval.tool,), **fields)
        change, ann = policymaking.propose_policy(team=approval.team, by=person("amy"), draft=draft), person("ann")

        def act() -> None:
            changes.confirm(change_id=change.pk, by=ann)
            policymaking.tighten_open(team_id=approval.team_id)

        return act

    return prepare


def reapply(scene: Scene, seat: int) -> Act:
    by = person("amy")
    return lambda: policymaking.reapply(approval_id=scene.approval, by=by)


def leave(scene: Scene, seat: int) -> Act:
    """Who voted, or is about to, loses the right."""
    voted = Approval.objects.get(pk=scene.approval).voted_by
    return Membership.objects.filter(user__in=voted or [person(PEOPLE[1 - seat]).pk]).delete


def apply_rule(scene: Scene, seat: int) -> Act:
    return lambda: automatic.apply_rule(approval_id=scene.approval)


def stop_rules(scene: Scene, seat: int) -> Act:
    team, by = AutomaticRule.objects.select_related("team").get(name="Small").team, person("ops")
    return lambda: automatic.stop(team=team, by=by)


def do_spend(scene: Scene, seat: int) -> Act:
    return consume(scene, f"call-{seat}")


def spend_again(scene: Scene, seat: int) -> Act:
    return consume(scene, KEY)


def consume(scene: Scene, key: str) -> Act:
    by, action = AgentPrincipal(the_agent(), None), Approval.objects.get(pk=scene.approval).action
    return lambda: consuming.consume(approval_id=scene.approval, by=by, spent_key=key, action=action, token=None)


def do_revoke(scene: Scene, seat: int) -> Act:
    by = Person(person(PEOPLE[seat]))
    return lambda: grants.revoke(approval_id=scene.approval, by=by, reason="no")


def resume(scene: Scene, seat: int) -> Act:
    return lambda: claim_external(run_id=scene.run)


def finish(scene: Scene, seat: int) -> Act:
    return lambda: finish_external(run_id=scene.run, token=None, actor="system", result=seat)


def report(succeeded: bool) -> Callable[[Scene, int], Act]:
    def prepare(scene: Scene, seat: int) -> Act:
        by = AgentPrincipal(the_agent(), None)
        return lambda: consuming.report_outcome(
            approval_id=scene.approval, by=by, succeeded=succeeded, outcome='{"receipt":1}', token=None
        )

    return prepare


def outcome(succeeded: bool) -> Callable[[Scene, int], Act]:
    """The engine's own, in its transaction under the run's lock."""

    def act(scene: Scene) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            lock_run(cursor, scene.run)
            grants.record_outcome(
                cursor, approval_id=scene.approval, spent_key=KEY, succeeded=succeeded, outcome="{}", observed=True
            )

    return lambda scene, seat: lambda: act(scene)


def do_doubt(scene: Scene, seat: int) -> Act:
    """The call's worker died: the run parks, and a person is asked. Once the outcome is known there is no doubt."""

    def act() -> None:
        approval = Approval.objects.get(pk=scene.approval)
        with transaction.atomic(), connection.cursor() as cursor:
            run = lock_run(cursor, scene.run)
            if run.status not in (RunStatus.RUNNING, RunStatus.SUSPENDED) or approval.grant.outcome_at is not None:
                raise WrongState(run.run_id, run.status, "in doubt")
            RunHead.objects.filter(run=scene.run).update(
                status=RunStatus.SUSPENDED, reason=SuspendReason.IN_DOUBT, lease=None
            )
            now = database_now()
            doubt.open_in_doubt(
                cursor, run_id=scene.run, turn=0, key=approval.key, tool=approval.tool, arguments={},
                generation=0, started_at=now, safe_at=now, approval_id=scene.approval,
            )  # fmt: skip

    return act


def resolve(answer: doubt.Answer, **fields: Any) -> Callable[[Scene, int], Act]:
    def prepare(scene: Scene, seat: int) -> Act:
        who, review = person(PEOPLE[seat]), Approval.objects.get(pk=scene.asks).review
        return lambda: doubt.resolve_in_doubt(
            approval_id=scene.asks, person=who, answer=answer, review=review, **fields
        )

    return prepare


def too_late(scene: Scene, seat: int) -> Act:
    """The grant has run out when somebody says that the call was not made."""
    answer = resolve("not_happened")(scene, seat)
    return do_after(GRANT_LIFE, lambda scene: answer())(scene, seat)
