"""Approved, and not yet performed: the list, with what each waits for."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from approvals.models import Approval
from approvals.queries import visible_to
from approvals.queries.unperformed import unperformed
from runs.access import signed_in
from runs.presentation.status import StatusLine, status_line
from runs.principals import Person
from runs.states import RunStatus

SHOWN = 200


@require_safe
@signed_in
def unperformed_page(request: HttpRequest, person: Person) -> HttpResponse:
    found = list(unperformed(visible_to(person))[: SHOWN + 1])
    context = {
        "section": "inbox",
        "lines": [_line(approval) for approval in found[:SHOWN]],
        "shown": SHOWN if len(found) > SHOWN else None,
    }
    return render(request, "approvals/unperformed.html", context)


def _line(approval: Approval) -> tuple[Approval, StatusLine, str]:
    """With its run's status, and why it has not been performed."""
    status = status_line(approval.run)
    blocked = approval.run.head.status == RunStatus.BLOCKED
    return approval, status, status.detail if blocked else status.sentence
