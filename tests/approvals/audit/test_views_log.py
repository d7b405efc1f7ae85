import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.audit.views_log import record_days, record_view
from approvals.models import Approval, AuditEvent, CardView
from approvals.tasks import seal
from runs.models import Agent
from tests.approvals.scenes import opened

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


@pytest.fixture
def approval(agent: Agent) -> Approval:
    return opened(agent)


def viewed() -> list[tuple[str, Any]]:
    events = AuditEvent.objects.filter(type="approval.viewed").order_by("id")
    return [(event.actor, json.loads(event.content.body)) for event in events]


def test_a_view_is_kept_once_for_a_person_a_revision_and_a_quarter_of_an_hour(
    approval: Approval, person: Callable[..., User], start_of_next: Callable[[timedelta], None]
) -> None:
    ada, bob = person("ada"), person("bob")
    start_of_next(timedelta(minutes=15))
    for viewer in (ada, ada, bob):
        record_view(approval=approval, viewer=viewer)
    assert CardView.objects.count() == 2
    start_of_next(timedelta(minutes=15))
    record_view(approval=approval, viewer=ada)
    assert CardView.objects.count() == 3
    view = CardView.objects.filter(viewer=ada).latest("quarter")
    assert (view.revision, view.review) == (1, approval.review)
    assert (view.quarter.minute % 15, view.quarter.second, view.quarter.microsecond) == (0, 0, 0)


def test_the_day_after_it_is_an_event_for_each_person(
    approval: Approval, person: Callable[..., User], move_clock: Callable[[timedelta], None]
) -> None:
    ada, bob = person("ada"), person("bob")
    record_view(approval=approval, viewer=ada)
    record_view(approval=approval, viewer=bob)
    assert record_days() == 0
    move_clock(DAY)
    record_view(approval=approval, viewer=ada)
    assert record_days() == 2
    assert record_days() == 0
    assert [actor for actor, _ in viewed()] == [f"person:{ada.pk}", f"person:{bob.pk}"]
    body = viewed()[0][1]
    assert body["approval"] == str(approval.pk)
    assert [(view["revision"], view["review"]) for view in body["views"]] == [(1, approval.review)]


def test_the_task_records_and_seals(
    approval: Approval, person: Callable[..., User], move_clock: Callable[[timedelta], None]
) -> None:
    record_view(approval=approval, viewer=person("ada"))
    move_clock(DAY)
    seal()
    assert AuditEvent.objects.get(type="approval.viewed").leaf.no
