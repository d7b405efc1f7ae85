"""Several cards at once, when they are about the same tool under the same policy: each is a decision of its own."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from approvals import canonical
from approvals.audit.views_log import record_view
from approvals.errors import NotVisible, Refused, VoteInvalid
from approvals.forms import Several, read_several
from approvals.models import Approval
from approvals.presentation.oddities import texts_of
from approvals.presentation.refusals import notice
from approvals.queries import visible_to
from approvals.queries.around import alike as cards_alike
from approvals.queries.around import like
from approvals.services.voting import vote
from runs.access import signed_in
from runs.presentation.text import warnings
from runs.presentation.values import Row, holds_credentials, rows
from runs.principals import Person

MOST = 50


@dataclass(frozen=True)
class Line:
    """One card of the list. What needs a closer look (`is_odd`) is decided on its own page."""

    approval: Approval
    args: list[Row]
    is_odd: bool


@dataclass(frozen=True)
class Outcome:
    """What became of one vote: `refusal` says why it did not count."""

    approval: Approval
    refusal: str


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def alike(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    approval = visible_to(person).select_related("agent").filter(pk=approval_id).first()
    if approval is None:
        raise Http404
    outcomes: list[Outcome] = []
    complaint = ""
    if request.method == "POST":
        several = read_several(request.POST)
        if several is None:
            complaint = "Tick the cards, then say what is to happen to them."
        else:
            outcomes = _vote(person, several, approval)
    found = [] if outcomes else cards_alike(approval, viewer=person, limit=MOST)
    for card in found:
        record_view(approval=card, viewer=person.user)
    context = {
        "section": "inbox",
        "approval": approval,
        "lines": [_line(card) for card in found],
        "outcomes": outcomes,
        "complaint": complaint,
        "hold": int(settings.FERMATA_HOLD_SECONDS),
    }
    return render(request, "approvals/alike.html", context, status=400 if complaint else 200)


def _line(approval: Approval) -> Line:
    args = canonical.parse(approval.args)
    is_odd = bool(warnings(*texts_of(approval))) or holds_credentials(args)
    return Line(approval, rows(args), is_odd)


def _vote(person: Person, several: Several, first: Approval) -> list[Outcome]:
    """Vote on each card like `first` on its own; one that is refused stops no other."""
    cards = like(first, visible_to(person)).in_bulk(list(several.reviews)[:MOST])
    outcomes = []
    for approval_id, approval in cards.items():
        review, refusal = several.reviews[approval_id], ""
        try:
            vote(
                approval_id=approval_id,
                voter=person.user,
                verdict=several.verdict,
                review=review,
                message=several.message,
                hold=timedelta(seconds=settings.FERMATA_HOLD_SECONDS),
            )
        except NotVisible:
            continue
        except VoteInvalid as error:
            refusal = "; ".join(f"the {field} {message}" for field, message in error.errors)
        except Refused as error:
            refusal = notice(error, approval, seen=review).title
        outcomes.append(Outcome(approval, refusal))
    return outcomes
