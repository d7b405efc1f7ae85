"""The three answers to a call in doubt, posted through its card."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from approvals.models import Approval, Grant
from approvals.states import ApprovalStatus, GrantStatus
from runs.models import Agent, Step
from runs.states import StepState
from tests.approvals.scenes import cast, in_doubt, opened, run_status
from tests.support.pages import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def card(agent: Agent, reviewer: User) -> Approval:
    return in_doubt(cast(opened(agent), reviewer))


def said(card: Approval, answer: str, **more: str) -> dict[str, str]:
    return {"verdict": answer, "review": card.review, **more}


@pytest.mark.parametrize(
    ("answer", "more", "settled", "step", "grant", "run"),
    [
        (
            "happened",
            {"outcome": '{"receipt": "R-1"}'},
            ApprovalStatus.RESPONDED,
            StepState.DONE,
            GrantStatus.SUCCEEDED,
            "queued",
        ),
        ("not_happened", {}, ApprovalStatus.APPROVED, StepState.NOT_PERFORMED, GrantStatus.SPENT, "queued"),
        ("stop", {"message": "Enough."}, ApprovalStatus.REJECTED, StepState.INTENT, GrantStatus.IN_DOUBT, "cancelled"),
    ],
)
def test_each_answer(
    card: Approval,
    reviewer: User,
    answer: str,
    more: dict[str, str],
    settled: str,
    step: str,
    grant: str,
    run: str,
) -> None:
    client = browser(reviewer)
    assert f'value="{answer}"' in client.get(f"/approvals/{card.pk}/?answer={answer}").content.decode()
    response = client.post(f"/approvals/{card.pk}/resolve/", said(card, answer, **more))
    assert (response.status_code, response["Location"]) == (302, f"/approvals/{card.pk}/")
    card.refresh_from_db()
    assert card.status == settled
    assert Step.objects.get(run=card.run_id, key=card.key).state == step
    assert Grant.objects.get().status == grant
    assert run_status(card) == run
    assert client.get(f"/approvals/{card.pk}/").status_code == 200


def test_an_outcome_that_is_no_json_is_kept_and_said(card: Approval, reviewer: User) -> None:
    response = browser(reviewer).post(f"/approvals/{card.pk}/resolve/", said(card, "happened", outcome="{receipt: 1"))
    assert response.status_code == 400
    assert "{receipt: 1" in response.content.decode()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_the_second_answer_is_told_of_the_first(card: Approval, reviewer: User, person: Callable[..., User]) -> None:
    browser(reviewer).post(f"/approvals/{card.pk}/resolve/", said(card, "not_happened"))
    late = browser(person("ben")).post(f"/approvals/{card.pk}/resolve/", said(card, "stop"))
    assert late.status_code == 409
    assert "Already approved by reviewer" in late.content.decode()


@pytest.mark.parametrize("answer", ["", "maybe", "approve"])
def test_what_is_no_answer_decides_nothing(card: Approval, reviewer: User, answer: str) -> None:
    assert browser(reviewer).post(f"/approvals/{card.pk}/resolve/", said(card, answer)).status_code == 400
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_only_who_may_decide_answers(card: Approval, person: Callable[..., User]) -> None:
    response = browser(person("olga", "operator")).post(f"/approvals/{card.pk}/resolve/", said(card, "stop"))
    assert response.status_code == 403
    assert run_status(card) == "suspended"
