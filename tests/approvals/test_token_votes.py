"""Votes by personal token: a person's own, but never for high risk, and nothing besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import Approval, AuditEvent, Vote
from approvals.services.policymaking import tighten_open
from approvals.services.voting import vote
from runs.models import Agent
from tests.approvals.doors import Scene
from tests.approvals.scenes import cast, opened, policy
from tests.approvals.test_permissions import TABLE, answer
from tests.approvals.test_permissions import scene as scene
from tests.support.api import Caller, with_token

pytestmark = pytest.mark.django_db(transaction=True)


def verdict(caller: Caller, approval: Approval, kind: str = "approve", **fields: Any) -> Any:
    approval.refresh_from_db()
    body = {"type": kind, "review": approval.review, **fields}
    return caller.post(f"/approvals/{approval.pk}/votes", body)


def test_a_token_votes_as_its_person(agent: Agent, reviewer: User) -> None:
    approval = opened(agent)
    said = verdict(with_token(reviewer), approval)
    assert (said.status_code, said.json()["decision"]["by"]) == (201, "reviewer")
    assert Vote.objects.get().by_token


def test_high_risk_takes_the_person_and_says_so(agent: Agent, reviewer: User) -> None:
    approval = opened(agent, risk="high")
    for kind in ("approve", "reject"):
        said = verdict(with_token(reviewer), approval, kind)
        assert (said.status_code, said.json()["code"]) == (403, "token_not_enough")
        assert "never counts for high risk" in said.json()["detail"]
    assert not Vote.objects.exists()
    assert AuditEvent.objects.filter(type="attempt.refused").count() == 2
    assert cast(approval, reviewer).status == "approved"


def test_a_risk_that_a_policy_makes_high_counts_too(agent: Agent, reviewer: User) -> None:
    policy(agent, "Money", (None, 1), tools=["refund"], risk="high")
    assert verdict(with_token(reviewer), opened(agent)).status_code == 403


def test_an_edit_into_high_risk_is_refused_whole(agent: Agent, reviewer: User) -> None:
    policy(
        agent, "Much", (None, 1), tools=["refund"], risk="high",
        condition='{"properties": {"amount": {"minimum": 100}}, "required": ["amount"]}',
    )  # fmt: skip
    approval = opened(agent)
    said = verdict(with_token(reviewer), approval, "edit", args={"order": "A-7", "amount": 500})
    assert (said.status_code, said.json()["code"]) == (403, "token_not_enough")
    approval.refresh_from_db()
    assert (approval.revision, approval.status) == (1, "pending")


def test_where_a_proof_is_wanted_a_token_is_none(agent: Agent, reviewer: User) -> None:
    policy(agent, "Proof", (None, 1), tools=["refund"], require_reauthentication=True)
    said = verdict(with_token(reviewer), opened(agent))
    assert (said.status_code, said.json()["code"]) == (403, "token_not_enough")


def test_a_vote_by_token_stops_counting_when_the_risk_becomes_high(
    agent: Agent, reviewer: User, person: Callable[..., User]
) -> None:
    """And its person can say it again themselves."""
    other = person("other")
    policy(agent, "Two", (None, 2), tools=["refund"])
    approval = opened(agent)
    assert verdict(with_token(reviewer), approval).status_code == 201
    policy(agent, "Tighter", (None, 1), tools=["refund"], risk="high")
    tighten_open(team_id=agent.team_id)
    assert cast(approval, other).status == "pending"
    assert cast(approval, reviewer).status == "approved"


def test_without_the_scope_a_token_only_reads(agent: Agent, reviewer: User) -> None:
    approval, reader = opened(agent), with_token(reviewer, may_vote=False)
    assert reader.get(f"/approvals/{approval.pk}").status_code == 200
    said = verdict(reader, approval)
    assert (said.status_code, said.json()["detail"]) == (403, "The token lacks the scope vote.")
    assert AuditEvent.objects.filter(type="attempt.refused").count() == 1


def test_the_services_take_votes_of_people_as_before(agent: Agent, reviewer: User) -> None:
    approval = opened(agent, risk="high")
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)
    assert not Vote.objects.get().by_token


# --- every door of the API -----------------------------------------------------------------------------------------


class ByToken(Scene):
    """The same people, with nothing but a token."""

    def knock(self, actor: str) -> Any:
        return with_token(self.people[actor]).client if actor in self.people else super().knock(actor)


VOTES = "/api/v1/approvals/{approval}/votes"
DOORS = [row for row in TABLE if row.address.startswith("/api/")]


@pytest.mark.parametrize("actor", ["stranger", "guest", "owner", "reviewer", "operator", "admin", "superuser"])
def test_a_token_reaches_what_its_person_reads_and_no_more(scene: Scene, actor: str) -> None:
    by_token = ByToken(scene.agent, scene.approval, scene.people, scene.agents, scene.places)
    reads = [row for row in DOORS if row.method == "GET"]
    deeds = [row for row in DOORS if row.method == "POST" and row.address != VOTES]
    assert len(reads) > 6 < len(deeds)
    assert {row.address: answer(row, actor, by_token) for row in reads} == {
        row.address: row.expected[actor] for row in reads
    }
    assert {row.address: answer(row, actor, by_token) for row in deeds} == {row.address: "403" for row in deeds}


@pytest.mark.parametrize("actor", ["stranger", "guest", "owner", "reviewer", "operator", "admin", "superuser"])
def test_a_token_votes_where_its_person_may(scene: Scene, actor: str) -> None:
    (row,) = (row for row in DOORS if row.address == VOTES)
    by_token = ByToken(scene.agent, scene.approval, scene.people, scene.agents, scene.places)
    assert answer(row, actor, by_token) == row.expected[actor]
