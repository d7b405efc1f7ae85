"""The inbox and its cards: parse, call one service or query, answer. A GET never decides."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import authenticate
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import reswap, retarget, trigger_client_event

from approvals.audit.views_log import record_view
from approvals.errors import EditInvalid, NotVisible, Refused, StepUpNeeded, VoteInvalid
from approvals.forms import Ballot, read_ballot, read_resolution
from approvals.models import Approval
from approvals.presentation.card import Card, build_card
from approvals.presentation.inbox import read_inbox, row_line
from approvals.presentation.refusals import Notice, changed, notice
from approvals.queries import visible_to
from approvals.services.claims import claim, release
from approvals.services.doubt import resolve_in_doubt
from approvals.services.grants import revoke
from approvals.services.revealing import reveal
from approvals.services.settling import settle
from approvals.services.stepup import confirm
from approvals.services.voting import undo, vote
from approvals.states import ApprovalKind
from runs.access import signed_in
from runs.principals import Person

NO_ANSWER = Notice("Not done", "The form names no answer.", status=400)


@require_safe
@signed_in
def inbox(request: HttpRequest, person: Person) -> HttpResponse:
    return render(request, "approvals/inbox.html", _inbox(request, person))


@require_safe
@signed_in
def inbox_news(request: HttpRequest, person: Person) -> HttpResponse:
    """How many cards came since the page was made, and today's counts. The rows stay as they are under the hand."""
    return render(request, "approvals/_news.html", _inbox(request, person))


@require_safe
@signed_in
def approval_page(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    approval = _visible(person, approval_id)
    record_view(approval=approval, viewer=person.user)
    typed = {"mode": "json"} if request.GET.get("mode") == "json" and approval.kind == ApprovalKind.ACTION else {}
    return _card(request, person, approval_id, open_form=request.GET.get("answer", ""), typed=typed)


@require_safe
@signed_in
def approval_row(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    """A card's line in the queue, as it is now."""
    approval = _visible(person, approval_id)
    address = request.htmx.current_url_abs_path or ""  # type: ignore[attr-defined]
    context = {
        "row": row_line(approval),
        "query": request.GET.urlencode(),
        "is_open": address.startswith(reverse("approval", args=[approval.pk])),
    }
    return render(request, "approvals/_row.html", context)


@require_safe
@signed_in
def approval_progress(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    """What an open card shows of what became of it."""
    return _update(request, person, approval_id)


@require_POST
@signed_in
def approval_vote(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    """One verdict on what the person was shown. What was typed is kept when it is refused."""
    ballot = read_ballot(request.POST.dict(), _visible(person, approval_id))
    if ballot is None:
        return _card(request, person, approval_id, refusal=NO_ANSWER)
    again = partial(_card, request, person, approval_id, open_form=ballot.verdict)
    if not ballot.is_readable:
        return again(typed={"ballot": ballot}, status=400)
    if ballot.password and not _confirmed(request, person, approval_id, ballot):
        return again(typed={"ballot": ballot, "errors": {"password": "That is not your password."}}, status=403)
    try:
        vote(
            approval_id=approval_id,
            voter=person.user,
            verdict=ballot.verdict,
            review=ballot.review,
            args=ballot.args,
            message=ballot.message,
            hold=timedelta(seconds=settings.FERMATA_HOLD_SECONDS),
        )
    except EditInvalid as error:
        rest = ballot.edit.blame(list(error.errors)) if ballot.edit else []
        return again(typed={"ballot": ballot, "errors": {"form": " ".join(rest)}}, status=400)
    except VoteInvalid as error:
        return again(typed={"ballot": ballot, "errors": dict(error.errors)}, status=400)
    except StepUpNeeded as error:
        return again(typed={"ballot": ballot, "errors": {"form": f"{error}."}}, status=403)
    except Refused as error:
        return _refused(request, person, approval_id, error, seen=ballot.review)
    return _done(request, person, approval_id)


@require_POST
@signed_in
def approval_resolve(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    """What became of a call in doubt."""
    said = read_resolution(request.POST.dict())
    if said is None:
        return _card(request, person, approval_id, refusal=NO_ANSWER)
    again = partial(_card, request, person, approval_id, open_form=said.answer)
    if said.error:
        return again(typed={"resolution": said}, status=400)
    try:
        resolve_in_doubt(
            approval_id=approval_id,
            person=person.user,
            answer=said.answer,
            review=said.review,
            outcome=said.outcome,
            message=said.message,
        )
    except VoteInvalid as error:
        return again(typed={"resolution": said, "errors": {"form": f"{error}."}}, status=400)
    except Refused as error:
        return _refused(request, person, approval_id, error, seen=said.review)
    return _done(request, person, approval_id)


@require_POST
@signed_in
def approval_undo(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    return _attempt(request, person, approval_id, lambda: undo(approval_id=approval_id, voter=person.user))


@require_POST
@signed_in
def approval_revoke(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    return _attempt(request, person, approval_id, lambda: revoke(approval_id=approval_id, by=person, reason=""))


@require_POST
@signed_in
def approval_claim(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    return _attempt(request, person, approval_id, lambda: claim(approval_id=approval_id, person=person.user))


@require_POST
@signed_in
def approval_release(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    return _attempt(request, person, approval_id, lambda: release(approval_id=approval_id, person=person.user))


@require_POST
@signed_in
def approval_reveal(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    """The card with its credentials, this once; that they were shown is on record."""
    try:
        reveal(approval_id=approval_id, person=person.user)
    except Refused as error:
        return _refused(request, person, approval_id, error)
    return _card(request, person, approval_id, revealed=True)


@require_POST
@signed_in
def approval_settle(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    """The page's ping when a hold is over: the sweeper would do the same a little later."""
    settle(approval_id=_visible(person, approval_id).pk)
    return _update(request, person, approval_id)


def _attempt(request: HttpRequest, person: Person, approval_id: UUID, service: Callable[[], object]) -> HttpResponse:
    try:
        service()
    except Refused as error:
        return _refused(request, person, approval_id, error)
    return _done(request, person, approval_id)


def _done(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("approval", approval_id)
    return _card(request, person, approval_id)


def _refused(
    request: HttpRequest, person: Person, approval_id: UUID, error: Refused, *, seen: str = ""
) -> HttpResponse:
    if isinstance(error, NotVisible):
        raise Http404 from error
    return _card(request, person, approval_id, refusal=notice(error, _visible(person, approval_id), seen=seen))


def _card(
    request: HttpRequest,
    person: Person,
    approval_id: UUID,
    *,
    open_form: str = "",
    typed: dict[str, Any] | None = None,
    refusal: Notice | None = None,
    revealed: bool = False,
    status: int = 200,
) -> HttpResponse:
    """The card as it is now: with a form open, and in it what was `typed`; or with a refusal on top."""
    card = build_card(_visible(person, approval_id), person.user, revealed=revealed)
    answer = card.form(open_form, **(typed or {})) if open_form else None
    is_shown_first = request.method != "POST" and answer is None
    context: dict[str, Any] = {
        **_inbox(request, person, card),
        "card": card,
        "answer": answer,
        "notice": refusal,
        "has_moved": request.method == "POST",
        "focus": "title" if is_shown_first else "progress",
    }
    template = "approvals/card/card.html" if request.htmx else "approvals/inbox.html"  # type: ignore[attr-defined]
    response = render(request, template, context, status=refusal.status if refusal else status)
    # What else on the page shows this card fetches itself again.
    return trigger_client_event(response, "changed", {"id": str(approval_id)}) if context["has_moved"] else response


def _update(request: HttpRequest, person: Person, approval_id: UUID) -> HttpResponse:
    """What changed on an open card: its bar, and its head when it moved on. A card about something else now is shown
    anew, and says what is different: its buttons must never stand under older arguments."""
    approval = _visible(person, approval_id)
    seen = request.GET.get("review", "")
    if seen != approval.review:
        response = _card(request, person, approval_id, refusal=changed(approval, seen))
        response.status_code = 200
        return reswap(retarget(response, "#card"), "outerHTML")
    card = build_card(approval, person.user)
    has_moved = request.GET.get("state") != card.state
    if not has_moved and card.progress is None:
        return HttpResponse(status=204)
    context = {**_inbox(request, person, card), "card": card, "has_moved": has_moved}
    return render(request, "approvals/card/update.html", context)


def _confirmed(request: HttpRequest, person: Person, approval_id: UUID, ballot: Ballot) -> bool:
    """Whether the password is the person's. If it is, that is noted for this card, as shown, and this verdict."""
    if authenticate(request, username=person.user.get_username(), password=ballot.password) != person.user:
        return False
    confirm(approval_id=approval_id, person=person.user, review=ballot.review, verdict=ballot.verdict)
    return True


def _inbox(request: HttpRequest, person: Person, card: Card | None = None) -> dict[str, Any]:
    return {"section": "inbox", **read_inbox(request.GET, person, beside=card.approval if card else None)}


def _visible(person: Person, approval_id: UUID) -> Approval:
    approval = (
        visible_to(person)
        .select_related("agent", "run__head", "claimed_by", "supersedes")
        .filter(pk=approval_id)
        .first()
    )
    if approval is None:
        raise Http404
    return approval
